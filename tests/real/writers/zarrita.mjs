// Arrays of zarrita, a JavaScript writer of v3. Prints, as one JSON document, every array with the
// elements that zarrita reads back; zarrita_.py keeps them.
import * as zarr from "zarrita";
import FileSystemStore from "@zarrita/storage/fs";

const root = zarr.root(new FileSystemStore(process.argv[2]));
const found = { "": { attributes: { who: "zarrita", list: [1, null, "ü"] } } };
await zarr.create(root, found[""]);
const bytes = { name: "bytes", configuration: { endian: "little" } };
const big = { name: "bytes", configuration: { endian: "big" } };
const types = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
  "float16", "float32", "float64"];

function element(dtype, n) {
  if (dtype === "bool") return n % 3 === 0;
  if (dtype.endsWith("64") && !dtype.startsWith("float")) return BigInt(n) * 3n;
  if (dtype.startsWith("float")) return n / 8 - 2;
  return n % 120;
}

async function add(path, dtype, shape, chunks, codecs, more = {}) {
  const chunkShape = /int64/.test(dtype) ? shape : chunks; // it cannot fill a BigInt array with null
  if (globalThis.Float16Array === undefined && dtype === "float16") return;
  const array = await zarr.create(root.resolve(path), {
    dtype, shape, chunkShape, codecs, attributes: { path }, ...more });
  const n = shape.reduce((a, b) => a * b, 1);
  const made = { bool: () => new zarr.BoolArray(n), float16: () => new Float16Array(n),
    int64: () => new BigInt64Array(n), uint64: () => new BigUint64Array(n) };
  const plain = () => new globalThis[`${dtype[0].toUpperCase()}${dtype.slice(1)}Array`](n);
  const strides = shape.map((_, d) => shape.slice(d + 1).reduce((a, b) => a * b, 1));
  const data = (made[dtype] ?? plain)();
  for (let i = 0; i < n; i++) {
    if (dtype === "bool") data.set(i, element(dtype, i));
    else data[i] = element(dtype, i);
  }
  const all = { shape, stride: strides, data };
  await zarr.set(array, null, all);
  const back = await zarr.get(await zarr.open(root.resolve(path), { kind: "array" }));
  found[path] = { dtype, shape, attributes: { path }, dims: more.dimensionNames ?? null,
    elements: Array.from({ length: n }, (_, i) => { // its strides are those of the chunks
      const at = strides.reduce((sum, s, d) => sum + Math.floor(i / s) % shape[d] * back.stride[d], 0);
      const v = dtype === "bool" ? back.data.get(at) : back.data[at];
      return typeof v === "bigint" ? String(v) : v;
    }) };
}

for (const name of ["/plain", "/zstd", "/transposed"]) {
  found[name] = { attributes: { name } };
  await zarr.create(root.resolve(name), found[name]);
}
for (const dtype of types) {
  await add(`/plain/${dtype}`, dtype, [5, 7], [2, 3], [bytes]);
  await add(`/zstd/${dtype}`, dtype, [5, 7], [2, 3], [bytes, { name: "zstd", configuration: { level: 5, checksum: false } }], {
    dimensionNames: ["y", "x"] });
  await add(`/transposed/${dtype}`, dtype, [4, 3, 2], [3, 2, 2], [
    { name: "transpose", configuration: { order: [2, 0, 1] } }, bytes,
    { name: "numcodecs.lz4", configuration: { acceleration: 1 } }], { chunkSeparator: "." });
}
await add("/big", "int32", [9], [4], [big]);
await add("/blosc", "float32", [40, 40], [16, 16], [bytes, { name: "blosc", configuration: {
  cname: "lz4", clevel: 5, shuffle: "shuffle", typesize: 4, blocksize: 0 } }]);
await add("/filled", "int16", [10], [5], [bytes], { fillValue: 7 });
console.log(JSON.stringify(found));
