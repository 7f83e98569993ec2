"""An HTTP server on loopback whose answers a function makes, for what nginx never answers."""
import contextlib
import http.server
import sys
import threading
import urllib.parse


# In place of a status: the connection ends without an answer, at once or with the server
LOST, HANGS = None, -1


class Request:
    def __init__(self, handler):
        self.method, self.path, self.headers = handler.command, handler.path, handler.headers
        self.body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))

    def range(self, length):
        """First and last byte of the range that is wanted; None: there is no Range."""
        text = self.headers.get("Range", "")
        if not text.startswith("bytes="):
            return None
        first, last = text[6:].split("-")
        if first:
            return int(first), min(int(last or length), length - 1)
        return max(0, length - int(last)), length - 1


def answer_whole(data, **headers):
    return 200, headers, data


def answer_range(request, data, **headers):
    """What a server with ranges answers."""
    span = request.range(len(data))
    if span is None:
        return 200, headers, data
    if span[0] > span[1]:
        return 416, {"Content-Range": f"bytes */{len(data)}", **headers}, b""
    return 206, {"Content-Range": f"bytes {span[0]}-{span[1]}/{len(data)}", **headers}, data[span[0]:span[1] + 1]


def answer_propfind(request, root, base=""):
    """What a WebDAV server of the files of a folder answers; base: what comes before each path."""
    folder = root / urllib.parse.unquote(request.path.partition("?")[0]).strip("/")
    if not folder.exists():
        return 404, {}, b""
    assert request.headers["Depth"] == "1"
    rows = []
    for file in (folder, *(sorted(folder.iterdir()) if folder.is_dir() else ())):
        path = "/" + urllib.parse.quote(str(file.relative_to(root))) if file != root else "/"
        kind = "<D:collection/>" if file.is_dir() else ""
        size = "" if file.is_dir() else f"<D:getcontentlength>{file.stat().st_size}</D:getcontentlength>"
        missing = "<D:propstat><D:prop><D:getcontentlength/></D:prop><D:status>HTTP/1.1 404 Not Found</D:status></D:propstat>" if file.is_dir() else ""
        rows.append(f"<D:response><D:href>{base}{path}{'/' if file.is_dir() and file != root else ''}</D:href><D:propstat><D:prop>"
                    f"<D:resourcetype>{kind}</D:resourcetype>{size}</D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat>{missing}</D:response>")
    return answer_xml(f'<D:multistatus xmlns:D="DAV:">{"".join(rows)}</D:multistatus>')


def answer_xml(text, status=207):
    return status, {"Content-Type": 'application/xml; charset="utf-8"'}, f'<?xml version="1.0" encoding="utf-8"?>\n{text}'.encode()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # the body follows in a second packet

    def log_message(self, *unused):
        pass

    def do_GET(self):
        request = Request(self)
        self.server.gate(request)
        with self.server.lock:
            status, headers, body = self.server.answer(request) or (None, {}, b"")
            self.server.log.append(f"{self.command} {self.path} {status}")
        if status in (LOST, HANGS):
            if status == HANGS:
                self.server.ends.wait()
            self.close_connection = True
            return
        (self.send_response_only if "Date" in headers else self.send_response)(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            if value is not None:
                self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_PROPFIND = do_PUT = do_POST = do_DELETE = do_GET


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # with five, each further connection that comes at once waits a second

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):  # a client that was killed
            super().handle_error(request, client_address)


@contextlib.contextmanager
def start_server(answer):
    """A server that answers each Request with (status, headers, body) of answer(request); `url`, and `log` of what it answered.
    A header of None takes the usual one away. An answer of None ends the connection without one. `gate` may hold a request up; others go on."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.answer, server.log, server.lock, server.gate = answer, [], threading.Lock(), lambda request: None
    server.ends = threading.Event()
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ends.set()
        server.shutdown()
        server.server_close()
        thread.join()
