"""S3 servers on loopback: versitygw (scripts/versitygw), and one whose answers a test makes, which checks signatures itself."""
import contextlib
import hashlib
import hmac
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import urllib.parse
from xml.sax.saxutils import escape

from http_answers import answer_range, start_server

ROOT = pathlib.Path(__file__).resolve().parents[2]
ID, SECRET = "AKIDEXAMPLE", "SecretKeyOfTests42"
BUCKET = "bucket"
# What no test may take from the machine
WITHOUT = {"AWS_SHARED_CREDENTIALS_FILE": "/nonexistent", "AWS_CONFIG_FILE": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true"}


def find_versitygw():
    """The path of the program; None and the reason: there is none."""
    done = subprocess.run([ROOT / "scripts/versitygw", "--built"], capture_output=True, text=True)
    return (done.stdout.strip(), "") if done.returncode == 0 else (None, done.stderr.strip())


def make_variables(endpoint, **more):
    return {"AWS_ACCESS_KEY_ID": ID, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ENDPOINT_URL": endpoint, "AWS_REGION": "us-east-1", **WITHOUT, **more}


@contextlib.contextmanager
def start_versitygw(folder):
    """Serves the folders in `folder` as buckets; gives the endpoint."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program, why = find_versitygw()
    assert program, why
    process = subprocess.Popen([program, "--access", ID, "--secret", SECRET, "--port", f"127.0.0.1:{port}", "--keep-alive", "--quiet", "posix", folder],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "HOME": str(folder)})
    try:
        for _ in range(1000):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if process.poll() is not None:
                    raise RuntimeError(process.stderr.read().decode()) from None
                time.sleep(0.01)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        process.stderr.close()


# ---- signatures ----


def _quote(text, safe=""):
    return urllib.parse.quote(text, safe=f"-_.~{safe}")


def check_signature(request, secrets, region="us-east-1", service="s3"):
    """None, or what is wrong with the signature; secrets: {id: secret}."""
    match = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d+)/([^/]+)/([^/]+)/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})",
                         request.headers.get("Authorization", ""))
    if not match:
        return "AccessDenied"
    ident, day, signed_region, signed_service, names, signature = match.groups()
    if signed_region != region or signed_service != service:
        return "AuthorizationHeaderMalformed"
    if ident not in secrets:
        return "InvalidAccessKeyId"
    content = hashlib.sha256(request.body).hexdigest()
    if service == "s3" and request.headers.get("x-amz-content-sha256") != content:
        return "XAmzContentSHA256Mismatch"
    if missing := {name.lower() for name in request.headers if name.lower() == "host" or name.lower().startswith("x-amz-")} - set(names.split(";")):
        return f"unsigned {missing}"
    path, _, query = request.path.partition("?")
    pairs = sorted((_quote(urllib.parse.unquote(k)), _quote(urllib.parse.unquote(v))) for k, _, v in (p.partition("=") for p in query.split("&") if p))
    lines = [request.method, _quote(urllib.parse.unquote(path), "/"), "&".join("=".join(pair) for pair in pairs),
             *(f"{name}:{' '.join(request.headers.get(name, '').split())}" for name in names.split(";")), "", names, content]
    scope = f"{day}/{region}/{service}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", request.headers["x-amz-date"], scope, hashlib.sha256("\n".join(lines).encode()).hexdigest()])
    key = b"AWS4" + secrets[ident].encode()
    for part in (*scope.split("/"), text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return None if key.hex() == signature else "SignatureDoesNotMatch"


# ---- answers ----


def answer_error(status, code, region=None, details="", **headers):
    told = f"<Region>{region}</Region>" if region else ""
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>text of the server</Message>{told}{details}<RequestId>REQ17</RequestId></Error>'
    return status, {"Content-Type": "application/xml", **headers}, body.encode()


def make_etag(data):
    return f'"{hashlib.md5(data).hexdigest()}"'


def answer_list(keys, prefix, folders=(), token=None, encoding=True, modified=None):
    """A page of ListObjectsV2; keys: {key: size}; modified: {key: seconds since 1970}."""
    put = (lambda text: urllib.parse.quote_plus(text, safe="/")) if encoding else escape

    def tell_age(key):
        return f"<LastModified>{time.strftime('%Y-%m-%dT%H:%M:%S.000Z', time.gmtime(modified[key]))}</LastModified>" if modified else ""

    rows = "".join(f"<Contents><Key>{put(key)}</Key><ETag>&quot;1&quot;</ETag><Size>{size}</Size>{tell_age(key)}</Contents>" for key, size in keys.items())
    rows += "".join(f"<CommonPrefixes><Prefix>{put(name)}</Prefix></CommonPrefixes>" for name in folders)
    more = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{escape(token)}</NextContinuationToken>" if token else "<IsTruncated>false</IsTruncated>"
    head = "<EncodingType>url</EncodingType>" if encoding else ""
    return 200, {}, (f'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Prefix>{put(prefix)}</Prefix>{rows}{more}{head}</ListBucketResult>').encode()


class Service:
    """The files of a folder as objects of one bucket. `fault(request)` may answer first. `metadata` has the x-amz-meta-* of keys that were
    written here. `ignores`: the headers of conditions that writes ignore, as "PUT If-Match"."""

    LOST = object()  # what `fault` returns for an answer that never comes

    def __init__(self, folder, page=1000):
        self.folder, self.page, self.secrets, self.region, self.fault = folder, page, {ID: SECRET}, "us-east-1", None
        self.is_anonymous, self.metadata, self.ignores = False, {}, set()

    @staticmethod
    def find_key(request):
        return urllib.parse.unquote(request.path.partition("?")[0]).strip("/").partition("/")[2]

    def put(self, request, key):
        """Replaces a file in one step."""
        file, draft = self.folder / key, self.folder.parent / f".draft.{self.folder.name}"
        draft.write_bytes(request.body)
        file.parent.mkdir(parents=True, exist_ok=True)
        draft.replace(file)
        self.metadata[key] = {name: value for name, value in request.headers.items() if name.lower().startswith("x-amz-meta-")}
        return 200, {"ETag": make_etag(request.body)}, b""

    def erase(self, key):
        """Removes a file, and folders that are empty then: a bucket has none."""
        file = self.folder / key
        file.unlink(missing_ok=True)
        self.metadata.pop(key, None)
        for folder in file.parents:
            if folder == self.folder or not folder.is_dir() or any(folder.iterdir()):
                break
            folder.rmdir()
        return 204, {}, b""

    def refuse(self, request, etag):
        """What a condition forbids; None: nothing."""
        new, expected = (request.headers.get(name) if f"{request.method} {name}" not in self.ignores else None for name in ("If-None-Match", "If-Match"))
        if new == "*" and etag:
            return answer_error(412, "PreconditionFailed")
        if expected and not etag:
            return answer_error(404, "NoSuchKey")
        return answer_error(412, "PreconditionFailed") if expected and expected != etag else None

    def change(self, request, key, etag):
        """What a request other than a GET or HEAD does."""
        if request.method == "PUT":
            return self.put(request, key)
        return self.erase(key) if request.method == "DELETE" else answer_error(405, "MethodNotAllowed")

    def list(self, query):
        prefix, token = query.get("prefix", ""), query.get("continuation-token", "")
        names = sorted(str(f.relative_to(self.folder)) for f in self.folder.rglob("*") if f.is_file())
        rows = {}
        for name in names:
            if name.startswith(prefix):
                inner, slash, _ = name[len(prefix):].partition("/")
                rows[prefix + inner + slash if query.get("delimiter") and slash else name] = bool(query.get("delimiter") and slash)
        left = [name for name in sorted(rows) if name > token]
        page = left[:self.page]
        keys = {name: (self.folder / name).stat().st_size for name in page if not rows[name]}
        return answer_list(keys, prefix, [name for name in page if rows[name]], page[-1] if len(left) > len(page) else None,
                           modified={name: (self.folder / name).stat().st_mtime for name in keys})

    def __call__(self, request):
        if self.fault and (found := self.fault(request)):
            return None if found is self.LOST else found
        if not self.is_anonymous and (wrong := check_signature(request, self.secrets, self.region)):
            return answer_error(400 if wrong == "AuthorizationHeaderMalformed" else 403, wrong)
        if self.is_anonymous and "Authorization" in request.headers:
            return answer_error(403, "SignedAlthoughAnonymous")
        return self.carry_out(request)

    def carry_out(self, request):
        """What a request does that is no fault, and is signed as it should be."""
        if "x-amz-copy-source" in request.headers or "uploads" in request.path.partition("?")[2]:
            return answer_error(501, "NotImplemented")  # s3_large.py has both
        path, _, text = request.path.partition("?")
        bucket, _, key = urllib.parse.unquote(path).strip("/").partition("/")
        if bucket != BUCKET:
            return answer_error(404, "NoSuchBucket")
        if not key:
            return self.list(dict(urllib.parse.parse_qsl(text)))
        file = self.folder / key
        data = file.read_bytes() if file.is_file() else None
        etag = make_etag(data) if data is not None else None
        if refused := self.refuse(request, etag):
            return refused
        if request.method not in ("GET", "HEAD"):
            return self.change(request, key, etag)
        if data is None:
            return answer_error(404, "NoSuchKey")
        return answer_range(request, data, ETag=etag, **self.metadata.get(key, {}))


@contextlib.contextmanager
def start_service(folder, **options):
    """A server of our own; `service` decides, `log` has what it answered."""
    service = Service(folder, **options)
    with start_server(service) as server:
        server.service = service
        yield server
