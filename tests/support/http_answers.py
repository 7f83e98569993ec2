"""An HTTP server on loopback whose answers a function makes, for what nginx never answers."""
import contextlib
import http.server
import threading


class Request:
    def __init__(self, handler):
        self.method, self.path, self.headers = handler.command, handler.path, handler.headers

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


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *unused):
        pass

    def do_GET(self):
        request = Request(self)
        with self.server.lock:
            status, headers, body = self.server.answer(request)
            self.server.log.append(f"{self.command} {self.path} {status}")
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            if value is not None:
                self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET


@contextlib.contextmanager
def start_server(answer):
    """A server that answers each Request with (status, headers, body) of answer(request); `url`, and `log` of what it answered.
    A header of None takes the usual one away."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.answer, server.log, server.lock = answer, [], threading.Lock()
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
