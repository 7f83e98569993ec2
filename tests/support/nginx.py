"""nginx on loopback, for the time of a test: the files of a folder, with ranges and ETags."""
import contextlib
import http.client
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

CONFIGURATION = """daemon off; master_process off; pid {folder}/pid; error_log {folder}/errors;
events {{ worker_connections 1024; }}
http {{
    sendfile on; tcp_nopush on;
    log_format short "$request_method $request_uri $status";
    access_log {folder}/log short;
    client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
    uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
    server {{
        listen 127.0.0.1:{port};
        root {root};
        location / {{ autoindex on; autoindex_format json; }}
        location /html/ {{ alias {root}/; autoindex on; }}
        location /plain/ {{ alias {root}/; }}
    }}
}}
"""


def find_program():
    return shutil.which("nginx", path=f"/usr/sbin:/usr/local/sbin:{os.environ.get('PATH', '')}")


class Nginx:
    def __init__(self, port, folder):
        self.url, self._port, self._log, self._seen, self._marks = f"http://127.0.0.1:{port}", port, folder / "log", 0, 0

    def requests(self):
        """What was asked for since the last call, as "GET /path 200". nginx logs a request after its answer, so the log is complete
        once the mark of a later request is in it."""
        self._marks += 1
        mark = f"HEAD /mark-{self._marks} 404"
        connection = http.client.HTTPConnection("127.0.0.1", self._port)
        connection.request("HEAD", f"/mark-{self._marks}")
        connection.getresponse().read()
        connection.close()
        while mark not in (rows := self._log.read_text().splitlines()):
            time.sleep(0.001)
        found, self._seen = rows[self._seen:-1], len(rows)
        return found


@contextlib.contextmanager
def start(root):
    """Folders of the server: / has an index in JSON, /html/ one in HTML, /plain/ has none."""
    with tempfile.TemporaryDirectory() as name, socket.socket() as free:
        folder = pathlib.Path(name)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        (folder / "configuration").write_text(CONFIGURATION.format(folder=folder, port=port, root=root))
        process = subprocess.Popen([find_program(), "-c", folder / "configuration"], stderr=subprocess.PIPE)
        try:
            for _ in range(500):
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    if process.poll() is not None:
                        raise RuntimeError(process.stderr.read().decode()) from None
                    time.sleep(0.01)
            yield Nginx(port, folder)
        finally:
            process.terminate()
            process.wait()
            process.stderr.close()
