"""A service of s3_server.py that also knows uploads in parts, copies, and erasing many keys at once. Tests take an answer away, or change it."""
import base64
import contextlib
import datetime
import email.utils
import hashlib
import time
import types
import urllib.parse
import xml.etree.ElementTree
from xml.sax.saxutils import escape

from http_answers import start_server
from s3_server import BUCKET, Service, answer_error, check_signature, make_etag


def read_xml(data):
    root = xml.etree.ElementTree.fromstring(data)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root


def answer_xml(text, **headers):
    return 200, {"Content-Type": "application/xml", **headers}, f'<?xml version="1.0" encoding="UTF-8"?>\n\n{text}'.encode()


def name_request(request):
    """The operation, as "UploadPart"; each has a name of its own."""
    path, _, query = request.path.partition("?")
    names = set(urllib.parse.parse_qs(query, keep_blank_values=True))
    is_key = urllib.parse.unquote(path).strip("/").count("/") > 0
    copies = "x-amz-copy-source" in request.headers
    if request.method == "POST":
        return "DeleteObjects" if "delete" in names else "CreateUpload" if "uploads" in names else "CompleteUpload"
    if "uploadId" in names:
        return "AbortUpload" if request.method == "DELETE" else "UploadPartCopy" if copies else "UploadPart"
    if "uploads" in names:
        return "ListUploads"
    if not is_key:
        return "ListObjects"
    return {"GET": "GetObject", "HEAD": "HeadObject", "PUT": "CopyObject" if copies else "PutObject", "DELETE": "DeleteObject"}[request.method]


def make_checksum(data):
    return base64.b64encode(hashlib.sha256(data).digest()).decode()


class LargeService(Service):
    """`after(name, request, answer)` may change an answer after the operation, `before(name, request)` may answer without it."""

    def __init__(self, folder, page=1000, least=5 << 20):
        super().__init__(folder, page)
        self.least, self.uploads, self.names, self.conditional, self.escapes = least, {}, [], True, True
        self.before = self.after = lambda *unused: None
        self.sizes = {}  # lengths that HEAD tells of keys

    def count(self, name):
        return self.names.count(name)

    def __call__(self, request):
        name = name_request(request)
        self.names.append(name)
        if self.fault and (found := self.fault(request)):
            return None if found is self.LOST else found
        if wrong := check_signature(request, self.secrets, self.region):
            return answer_error(403, wrong)
        answer = self.before(name, request)
        if answer is None:
            path, _, text = request.path.partition("?")
            query = dict(urllib.parse.parse_qsl(text, keep_blank_values=True))
            key = urllib.parse.unquote(path).strip("/").partition("/")[2]
            do = getattr(self, f"do_{name}", None)
            answer = do(request, key, query) if do else self.carry_out(request)
        return self.after(name, request, answer) or answer

    # ---- uploads ----

    def do_CreateUpload(self, request, key, _):
        algorithm = request.headers.get("x-amz-checksum-algorithm")
        if algorithm not in (None, "SHA256") or "x-amz-checksum-sha256" in request.headers:
            return answer_error(400, "InvalidRequest")
        ident = f"up/{len(self.uploads)}+="
        told = {name: value for name, value in request.headers.items() if name.lower().startswith("x-amz-meta-")}
        self.uploads[ident] = {"key": key, "parts": {}, "meta": told, "begun": time.time(), "is_open": True,
                               "checksums": {} if algorithm else None}
        return answer_xml(f"<InitiateMultipartUploadResult><Bucket>{BUCKET}</Bucket><Key>{escape(key)}</Key><UploadId>{ident}</UploadId></InitiateMultipartUploadResult>")

    def find_upload(self, key, query):
        found = self.uploads.get(query["uploadId"])
        return found if found and found["is_open"] and found["key"] == key else None

    def put_part(self, upload, query, data):
        number = int(query["partNumber"])
        if not 1 <= number <= 10000:
            return answer_error(400, "InvalidArgument"), None
        upload["parts"][number] = data
        return None, make_etag(data)

    def do_UploadPart(self, request, key, query):
        if not (upload := self.find_upload(key, query)):
            return answer_error(404, "NoSuchUpload")
        told = request.headers.get("x-amz-checksum-sha256")
        if (told is None) != (upload.get("checksums") is None):  # the one needs the other
            return answer_error(400, "InvalidRequest")
        if told not in (None, make_checksum(request.body)):
            return answer_error(400, "BadDigest")
        if told:
            upload["checksums"][int(query["partNumber"])] = told
        wrong, etag = self.put_part(upload, query, request.body)
        return wrong or (200, {"ETag": etag}, b"")

    def find_source(self, request):
        """The source of a copy, or an error."""
        path = urllib.parse.unquote(request.headers["x-amz-copy-source"]).lstrip("/")
        bucket, _, key = path.partition("/")
        file = self.folder / key
        if bucket != BUCKET or not file.is_file():
            return None, answer_error(404, "NoSuchKey")
        wanted = request.headers.get("x-amz-copy-source-if-match")
        if wanted and wanted != self.find_etag(key):
            return None, answer_error(412, "PreconditionFailed")
        return file, None

    def find_etag(self, key):
        file = self.folder / key
        return make_etag(file.read_bytes()) if file.is_file() else None

    def do_UploadPartCopy(self, request, key, query):
        if not (upload := self.find_upload(key, query)):
            return answer_error(404, "NoSuchUpload")
        file, wrong = self.find_source(request)
        if wrong:
            return wrong
        first, last = (int(text) for text in request.headers["x-amz-copy-source-range"].removeprefix("bytes=").split("-"))
        wrong, etag = self.put_part(upload, query, file.read_bytes()[first:last + 1])
        return wrong or answer_xml(f"<CopyPartResult><ETag>{escape(etag)}</ETag></CopyPartResult>")

    def store(self, key, data, metadata):
        return self.put(types.SimpleNamespace(body=data, headers=metadata), key)

    def do_CompleteUpload(self, request, key, query):
        if not (upload := self.find_upload(key, query)):
            return answer_error(404, "NoSuchUpload")
        found = list(read_xml(request.body).iter("Part"))
        rows = [(int(part.findtext("PartNumber")), part.findtext("ETag")) for part in found]
        told = {int(part.findtext("PartNumber")): part.findtext("ChecksumSHA256") for part in found if part.findtext("ChecksumSHA256")}
        if told != (upload.get("checksums") or {}) or "x-amz-checksum-sha256" in request.headers:  # that header would be the value's
            return answer_error(400, "InvalidRequest")
        parts = [upload["parts"].get(number) for number, _ in rows]
        if not rows or None in parts or any(etag != make_etag(data) for (_, etag), data in zip(rows, parts, strict=True)):
            return answer_error(400, "InvalidPart")
        if [number for number, _ in rows] != sorted({number for number, _ in rows}):
            return answer_error(400, "InvalidPartOrder")
        if len({len(data) for data in parts[:-1]}) > 1 or any(len(data) < self.least for data in parts[:-1]):
            return answer_error(400, "EntityTooSmall")
        if self.conditional and (wrong := self.refuse(request, self.find_etag(key))):
            return wrong
        upload["is_open"] = False
        self.store(key, b"".join(parts), upload["meta"])
        return answer_xml(f"<CompleteMultipartUploadResult><Key>{escape(key)}</Key><ETag>{escape(self.find_etag(key))}</ETag></CompleteMultipartUploadResult>")

    def do_AbortUpload(self, _, key, query):
        if not (upload := self.find_upload(key, query)):
            return answer_error(404, "NoSuchUpload")
        upload["is_open"] = False
        return 204, {}, b""

    def open_uploads(self):
        return [upload["key"] for upload in self.uploads.values() if upload["is_open"]]

    def do_ListUploads(self, _, key, query):
        prefix, after = query.get("prefix", ""), (query.get("key-marker", ""), query.get("upload-id-marker", ""))
        found = sorted((upload["key"], ident) for ident, upload in self.uploads.items() if upload["is_open"] and upload["key"].startswith(prefix))
        left = [pair for pair in found if pair > after]
        page = left[:self.page]
        put = (lambda key: urllib.parse.quote_plus(key, safe="/")) if self.escapes else escape
        rows = "".join(f"<Upload><Key>{put(name)}</Key><UploadId>{escape(ident)}</UploadId>"
                       f"<Initiated>{datetime.datetime.fromtimestamp(self.uploads[ident]['begun'], datetime.UTC):%Y-%m-%dT%H:%M:%S.000Z}</Initiated></Upload>"
                       for name, ident in page)
        more = (f"<IsTruncated>true</IsTruncated><NextKeyMarker>{put(page[-1][0])}</NextKeyMarker>"
                f"<NextUploadIdMarker>{escape(page[-1][1])}</NextUploadIdMarker>" if len(left) > len(page) else "<IsTruncated>false</IsTruncated>")
        return answer_xml(f"<ListMultipartUploadsResult>{'<EncodingType>url</EncodingType>' * self.escapes}{rows}{more}</ListMultipartUploadsResult>",
                          Date=email.utils.formatdate(usegmt=True))

    # ---- copies, and many keys ----

    def do_CopyObject(self, request, key, _):
        file, wrong = self.find_source(request)
        if wrong:
            return wrong
        self.store(key, file.read_bytes(), {})
        return answer_xml(f"<CopyObjectResult><ETag>{escape(self.find_etag(key))}</ETag></CopyObjectResult>")

    def do_HeadObject(self, request, key, _):
        status, headers, body = self.carry_out(request)
        if key in self.sizes:
            headers["Content-Length"] = str(self.sizes[key])
        return status, headers, body

    def do_DeleteObjects(self, request, _key, _query):
        if "x-amz-checksum-sha256" not in request.headers and "Content-MD5" not in request.headers:
            return answer_error(400, "InvalidRequest")
        keys = [found.findtext("Key") for found in read_xml(request.body).iter("Object")]
        if len(keys) > 1000:
            return answer_error(400, "MalformedXML")
        for key in keys:
            self.erase(key)
        return answer_xml(f"<DeleteResult>{''.join(f'<Deleted><Key>{escape(key)}</Key></Deleted>' for key in keys)}</DeleteResult>")


@contextlib.contextmanager
def start_large_service(folder, **options):
    """As start_service() of s3_server.py."""
    service = LargeService(folder, **options)
    with start_server(service) as server:
        server.service = service
        yield server
