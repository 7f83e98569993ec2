#!/usr/bin/env python3
"""An HTTP server on loopback that makes every fault that a request asks for in its query.

    scripted_server.py [--root FOLDER] [--tls] COMMAND...   serves while the command runs
    scripted_server.py [--root FOLDER] [--tls]              prints its URLs and serves

The command finds the URLs in its environment: ZR_SERVER, ZR_SERVER_2 (another origin, the
same server) and, with --tls, ZR_SERVER_TLS and the file ZR_SERVER_CA. Tests in Python use
run_server().

GET /N has N bytes, byte_at(i) each. Other paths are files of FOLDER or, without --root, of
an empty folder, ZR_SERVER_ROOT. Parameters:

    id=X&times=K  what follows counts for the first K requests with this id only
    status=S      this status; retry_after=V, to=URL (Location), header=Name:value as well
    latency=MS    waits before it answers; rate=B sends B bytes each second
    reset=N       resets the connection after N bytes of the body; -1: before the header
    close=N       closes it there; stall=N: sends nothing more; lost=1: does not answer
    length=N      a wrong Content-Length; range=V: a wrong Content-Range
    whole=1       ignores Range; chunked=1; bare=1: neither length nor chunks
    headers=N     N headers more; endless=1: header lines without end; informs=N: N answers
                  of status 103 before, -1: without end
    encoding=V    Content-Encoding; etag=V: the ETag, `count` for another one each time
    echo=1        the body is the header of the request
    path=P        answers for another path
    hops=N        a chain of N redirects before the answer

run_server() also takes parameters from `choose_faults`, a function of each request. The ETag of a file depends on its bytes.
As a proxy it takes any host for itself, and answers `CONNECT S.name` with status S.

/_stats has JSON: requests, connections, bytes of bodies sent, and requests by id.
"""
import asyncio
import contextlib
import email.utils
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import urllib.parse
import zlib

PERIOD = 65536
PATTERN = bytes((i * 131 + (i >> 8)) & 255 for i in range(PERIOD)) * 2
PIECE = 65536
REASONS = {200: "OK", 206: "Partial Content", 404: "Not Found", 416: "Range Not Satisfiable"}


def body_bytes(first, n):
    """The bytes of a body from `first` on."""
    at = first % PERIOD
    return (PATTERN * (1 + (at + n) // len(PATTERN)))[at:at + n]


class Value:
    """What a path has: a pattern or a file."""

    def __init__(self, server, path):
        self.data = None
        name = path.strip("/")
        if name.isdigit():
            self.bytes = self.etag = int(name)
        else:
            file = server.root and (server.root / urllib.parse.unquote(name)).resolve()
            if not file or server.root not in file.parents or not file.is_file():
                raise FileNotFoundError(path)
            self.data = file.read_bytes()
            self.bytes, self.etag = len(self.data), zlib.crc32(self.data)

    def get(self, first, n):
        return body_bytes(first, n) if self.data is None else self.data[first:first + n]


class Connection(asyncio.Protocol):
    def __init__(self, server):
        self.server, self.buffer, self.task = server, b"", None
        self.wake = asyncio.Event()

    def connection_made(self, transport):
        self.transport = transport
        self.server.connections += 1
        self.server.open.add(self)
        self.writable = asyncio.Event()
        self.writable.set()
        self.task = asyncio.ensure_future(self.serve())

    def connection_lost(self, error):
        self.server.open.discard(self)
        self.task.cancel()

    def pause_writing(self):
        self.writable.clear()

    def resume_writing(self):
        self.writable.set()

    def data_received(self, data):
        self.buffer += data
        self.wake.set()

    async def more(self):
        self.wake.clear()
        await self.wake.wait()

    async def serve(self):
        try:
            while True:
                while b"\r\n\r\n" not in self.buffer:
                    await self.more()
                header, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
                lines = header.decode("latin-1").split("\r\n")
                fields = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
                length = int(fields.get("content-length", 0))
                while len(self.buffer) < length:
                    await self.more()
                sent, self.buffer = self.buffer[:length], self.buffer[length:]
                await Answer(self, lines[0].split(" "), fields, header, sent).send()
        except asyncio.CancelledError:
            pass

    async def write(self, data):
        if self.transport.is_closing():
            raise asyncio.CancelledError
        self.transport.write(data)
        await self.writable.wait()

    async def end(self, reset=False):
        if reset:
            sock = self.transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abort()
        else:
            self.transport.close()
        raise asyncio.CancelledError


class Answer:
    def __init__(self, connection, request, fields, header, sent):
        self.connection, self.server, self.fields, self.header, self.sent = connection, connection.server, fields, header, sent
        self.method, target = request[0], urllib.parse.urlsplit(request[1])
        self.path = target.path
        self.query = dict(urllib.parse.parse_qsl(target.query, keep_blank_values=True))
        if self.server.choose_faults:
            self.query.update(self.server.choose_faults(self))
        counts = self.server.by_id
        ident = self.query.get("id")
        if ident is not None:
            counts[ident] = counts.get(ident, 0) + 1
        self.server.requests += 1
        if "times" in self.query and counts[ident] > int(self.query["times"]):
            self.query = {}

    def number(self, name):
        return int(self.query[name]) if name in self.query else None

    def choose(self):
        """Status, headers and body, before faults."""
        q, headers = self.query, {}
        if self.method == "CONNECT":
            return int(self.path.split(".")[0]), headers, b""
        if self.path == "/_stats":
            return 200, headers, json.dumps(self.server.stats()).encode()
        if "echo" in q:
            return 200, headers, self.header + b"\r\n" + self.sent
        if hops := self.number("hops"):
            return 302, {"Location": f"{self.path}?hops={hops - 1}"}, b""
        status = self.number("status") or (302 if "to" in q else None)
        if status and status >= 300:
            return status, headers, b"an answer of status %d" % status
        try:
            value = Value(self.server, q.get("path", self.path))
        except OSError:
            return 404, headers, b"<Error><Code>NoSuchKey</Code></Error>"  # as S3 says it
        headers["ETag"] = f'"{value.etag}"'
        wanted = self.fields.get("range", "")
        if not wanted.startswith("bytes=") or "whole" in q:
            return status or 200, headers, value.get(0, value.bytes)
        first, _, last = wanted[6:].partition("-")
        if first:
            first, last = int(first), min(int(last or value.bytes - 1), value.bytes - 1)
        else:
            first, last = max(value.bytes - int(last), 0), value.bytes - 1
        if first > last:
            headers["Content-Range"] = f"bytes */{value.bytes}"
            return 416, headers, b""
        headers["Content-Range"] = f"bytes {first}-{last}/{value.bytes}"
        return 206, headers, value.get(first, last - first + 1)

    def change(self, headers, n):
        q = self.query
        if "bare" in q:
            headers["Connection"] = "close"
        elif "chunked" in q:
            headers["Transfer-Encoding"] = "chunked"
        else:
            headers["Content-Length"] = q.get("length", n)
        for name, key in (("retry_after", "Retry-After"), ("range", "Content-Range"), ("encoding", "Content-Encoding"), ("etag", "ETag"), ("to", "Location")):
            if name in q:
                headers[key] = q[name]
        if q.get("etag") == "count":
            headers["ETag"] = f'"{self.server.requests}"'
        if "retry_date" in q:
            headers["Retry-After"] = email.utils.formatdate(usegmt=True)
        if "header" in q:
            key, _, headers[key] = q["header"].partition(":")
        for i in range(int(q.get("headers", 0))):
            headers[f"X-Flood-{i}"] = "x"

    async def send(self):
        q, c = self.query, self.connection
        if "latency" in q or self.server.latency:
            await asyncio.sleep((self.number("latency") or self.server.latency) / 1000)
        if "lost" in q:
            await c.end()
        if self.number("reset") == -1:
            await c.end(reset=True)
        status, headers, body = self.choose()
        self.change(headers, len(body))
        informs = int(q.get("informs", 0))
        while informs:
            await c.write(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
            await asyncio.sleep(0)  # so that the server notices that the client has left
            informs -= 1
        text = f"HTTP/1.1 {status} {REASONS.get(status, 'Scripted')}\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items())
        while "endless" in q:
            await c.write(text.encode() + b"X-Endless: x\r\n" * 100)
            await asyncio.sleep(0)
            text = ""
        if self.method == "HEAD":
            return await c.write(text.encode() + b"\r\n")
        if "chunked" in q:
            body = b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + 999]), body[i:i + 999]) for i in range(0, len(body), 999)) + b"0\r\n\r\n"
        await self.send_body(text.encode("latin-1") + b"\r\n", body)
        if "bare" in q:
            await c.end()

    async def send_body(self, head, body):
        q, c = self.query, self.connection
        ends = [name for name in ("reset", "close", "stall") if name in q]
        if ends:
            body = body[:int(q[ends[0]])]
        self.server.bytes += len(body)
        rate = self.number("rate")
        step = max(rate // 20, 1) if rate else PIECE
        if len(body) <= step:
            await c.write(head + body)
        else:
            await c.write(head)
            for at in range(0, len(body), step):
                await c.write(body[at:at + step])
                if rate:
                    await asyncio.sleep(step / rate)
        if ends:
            await asyncio.sleep(0.01 if ends[0] != "stall" else 3600)
            await c.end(reset=ends[0] == "reset")


class Server:
    def __init__(self, root=None, tls=False):
        self.root = pathlib.Path(root).resolve() if root else None
        self.tls, self.latency, self.choose_faults = tls, 0, None
        self.requests = self.connections = self.bytes = 0
        self.by_id, self.open, self.environment = {}, set(), {}

    def stats(self):
        return {"requests": self.requests, "connections": self.connections, "bytes": self.bytes, "by_id": self.by_id, "open": len(self.open)}

    async def start(self, folder):
        loop = asyncio.get_running_loop()
        if not self.root:
            self.root = pathlib.Path(folder, "root").resolve()
            self.root.mkdir()
        self.environment["ZR_SERVER_ROOT"] = str(self.root)
        for name in ("ZR_SERVER", "ZR_SERVER_2"):
            listening = await loop.create_server(lambda: Connection(self), "127.0.0.1", 0, backlog=1024)
            self.environment[name] = "http://127.0.0.1:%d" % listening.sockets[0].getsockname()[1]
        if self.tls and shutil.which("openssl"):
            key, certificate = os.path.join(folder, "key.pem"), os.path.join(folder, "cert.pem")
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                            "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", certificate],
                           check=True, capture_output=True)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            listening = await loop.create_server(lambda: Connection(self), "127.0.0.1", 0, ssl=context)
            self.environment["ZR_SERVER_TLS"] = "https://127.0.0.1:%d" % listening.sockets[0].getsockname()[1]
            self.environment["ZR_SERVER_CA"] = certificate


@contextlib.contextmanager
def run_server(root=None, tls=False):
    """Runs a server in a thread of this process: `environment` has its URLs, stats() its counts."""
    server, ready = Server(root, tls), threading.Event()
    loop = asyncio.new_event_loop()

    def run(folder):
        loop.run_until_complete(server.start(folder))
        ready.set()
        loop.run_forever()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks))
        loop.close()

    with tempfile.TemporaryDirectory() as folder:
        thread = threading.Thread(target=run, args=(folder,), daemon=True)
        thread.start()
        if not ready.wait(30):
            raise RuntimeError("the scripted server does not start")
        try:
            yield server
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()


async def serve_command(server, command):
    with tempfile.TemporaryDirectory() as folder:
        await server.start(folder)
        if not command:
            print(*(f"{k}={v}" for k, v in server.environment.items()), sep="\n", flush=True)
            await asyncio.Event().wait()
        child = await asyncio.create_subprocess_exec(*command, env={**os.environ, **server.environment})
        return await child.wait()


def main():
    arguments, options = sys.argv[1:], {}
    while arguments and arguments[0].startswith("--"):
        option = arguments.pop(0)
        options[option[2:]] = arguments.pop(0) if option == "--root" else True
    status = asyncio.run(serve_command(Server(**options), arguments))
    if status < 0:  # as a shell does
        os.kill(os.getpid(), -status if -status in (signal.SIGKILL, signal.SIGTERM) else signal.SIGABRT)
    sys.exit(status)


if __name__ == "__main__":
    main()
