"""Tables of anndata, in both formats: texts, categories with and without order, nullable columns,
sparse and dense matrices, nested mappings."""
import anndata
import numpy as np
import pandas
import scipy.sparse
import zarr

from keep import keep, place, walk

WRITER = f"anndata {anndata.__version__}, zarr-python {zarr.__version__}"
RNG = np.random.default_rng(5)
N, M = 60, 40


def table():
    made = anndata.AnnData(
        X=scipy.sparse.random(N, M, 0.1, "csr", dtype="f4", random_state=1),
        obs=pandas.DataFrame({
            "kind": pandas.Categorical.from_codes(RNG.integers(-1, 3, N), ["T", "B", "NK"]),
            "grade": pandas.Categorical(RNG.choice(["low", "mid", "high"], N), ["low", "mid", "high"], ordered=True),
            "note": np.array([f"zelle {n} µ" for n in range(N)], object), "count": RNG.integers(0, 99, N),
            "maybe": pandas.array([None if n % 7 == 0 else n for n in range(N)], dtype="Int32"),
            "sure": pandas.array([None if n % 5 == 0 else n % 2 == 0 for n in range(N)], dtype="boolean"),
            "share": RNG.random(N)}, index=[f"cell-{n}" for n in range(N)]),
        var=pandas.DataFrame({"chrom": ["X", "Y"] * (M // 2)}, index=[f"gene{n}" for n in range(M)]))
    made.layers["dense"] = RNG.normal(size=(N, M))
    made.layers["columns"] = scipy.sparse.random(N, M, 0.2, "csc", random_state=2)
    made.obsm["umap"] = RNG.normal(size=(N, 2)).astype("f4")
    made.obsm["frame"] = pandas.DataFrame({"a": np.arange(N)}, index=made.obs_names)
    made.obsp["near"] = scipy.sparse.identity(N, format="csr")
    made.uns.update({"title": "a title", "number": 5, "real": 0.25, "yes": True, "names": np.array(["a", "bb", ""]),
                     "deep": {"er": {"list": np.arange(3), "text": "x"}}, "record": np.array(
                         [(1, 2.5), (3, 4.5)], [("n", "<i4"), ("x", "<f8")])})
    return made


for version in (2, 3):
    anndata.settings.zarr_write_format = version
    name = f"table-v{version}.zarr"
    folder = place(name)
    table().write_zarr(folder, chunks=(25, 10))
    keep(name, WRITER, walk(zarr.open_group(folder, mode="r", use_consolidated=False)))
