/*
 * net/socket.c - opens the sockets of libcurl. Here the address of a host is known, so
 * redirects to private ones are refused. It counts the sockets and notes them, and the
 * descriptors of wake-ups that libcurl opens itself: a forked child closes them all.
 *
 * Thread class: shared; the callbacks run on reactors, inside of libcurl.
 */
#include "net/curl_int.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static const char socket_refusal[] =
    "a redirect leads from a public address to one that is not public";

/* Notes a descriptor; false: there is no memory. */
static bool socket_note_locked(int fd)
{
    const size_t word = (size_t)fd / 64;

    while (word >= zr_net_engine.n_socket_words) {
        const size_t before = zr_net_engine.n_socket_words;

        if (zr_grow(NULL, &zr_net_engine.socket_bits, &zr_net_engine.n_socket_words,
                    word + 1, sizeof *zr_net_engine.socket_bits, NULL) != ZARR_OK)
            return false;
        for (size_t i = before; i < zr_net_engine.n_socket_words; i++)
            zr_net_engine.socket_bits[i] = 0;
    }
    zr_net_engine.socket_bits[word] |= UINT64_C(1) << fd % 64;
    zr_net_engine.n_sockets++;
    return true;
}

curl_socket_t zr_net_on_open(void *user, curlsocktype purpose,
                             struct curl_sockaddr *address)
{
    struct zr_net_transfer *t = user;
    int type = address->socktype, fd;
    bool is_noted;

    ZR_UNUSED(purpose);
    if (t->was_public && zr_net_is_private(&address->addr)) {
        zr_net_fail(t, ZARR_ERR_IO, "%s", socket_refusal);
        return CURL_SOCKET_BAD;
    }
#ifdef SOCK_CLOEXEC
    type |= SOCK_CLOEXEC;
#endif
    /* a child that is forked meanwhile must know it: the engine's lock is held */
    zr_mutex_lock(&zr_net_engine.mutex);
    fd = socket(address->family, type, address->protocol);
    is_noted = fd >= 0 && socket_note_locked(fd);
    zr_mutex_unlock(&zr_net_engine.mutex);
    if (fd >= 0 && !is_noted) {
        (void)close(fd);
        fd = CURL_SOCKET_BAD;
    }
    return fd;
}

int zr_net_on_close(void *user, curl_socket_t fd)
{
    const size_t word = (size_t)fd / 64;
    const uint64_t bit = UINT64_C(1) << fd % 64;
    int rc;

    ZR_UNUSED(user);
    zr_mutex_lock(&zr_net_engine.mutex);
    if (word < zr_net_engine.n_socket_words && (zr_net_engine.socket_bits[word] & bit)) {
        zr_net_engine.socket_bits[word] &= ~bit;
        zr_net_engine.n_sockets--;
    }
    rc = close(fd);
    zr_mutex_unlock(&zr_net_engine.mutex);
    return rc;
}

/* libcurl has a connection, maybe an old one, and sends the request now. */
int zr_net_on_request(void *user, char *there, char *here, int there_port, int here_port)
{
    struct zr_net_transfer *t = user;

    ZR_UNUSED(here, there_port, here_port);
    if (t->was_public && zr_net_is_private_text(there))
        zr_net_fail(t, ZARR_ERR_IO, "%s", socket_refusal);
    /* libcurl sends any request again if an old connection turns out to be closed. The
     * server may have carried the first one out */
    if (t->is_sent && !zr_net_is_repeatable(t->request))
        zr_net_fail(t, ZARR_ERR_IO, "the connection ended before the answer");
    if (t->is_sent) {
        atomic_fetch_add(&t->net->requests, 1);
        atomic_fetch_add(&t->net->retries, 1);
    }
    t->is_sent = true;
    t->n_sends++;
    return t->st == ZARR_OK ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

/* ---- wake-ups ---- */

/* Whether bytes are in a pipe, a pair of sockets or an eventfd, seen from either end. */
static bool socket_has_bytes(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n = 0;

    return (poll(&p, 1, 0) == 1 && (p.revents & POLLIN)) ||
           (ioctl(fd, FIONREAD, &n) == 0 && n > 0) ||
           (ioctl(fd, TIOCOUTQ, &n) == 0 && n > 0);
}

/* libcurl does not tell its descriptors. They are the next two that are free, unless
 * another thread opens a file now, and have bytes after a wake-up only. While it looks up
 * a name it has two more, which a child keeps. */
CURLM *zr_net_multi_create(int wake_fd[2])
{
    CURLM *multi;

    for (int i = 0; i < 2; i++)
        wake_fd[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < 2; i++)
        if (wake_fd[i] >= 0)
            (void)close(wake_fd[i]);
    multi = zr_curl.multi_init();
    if (!multi)
        return NULL;
    (void)zr_curl.multi_wakeup(multi);
    for (int i = 0; i < 2; i++)
        if (wake_fd[i] >= 0 && !socket_has_bytes(wake_fd[i]))
            wake_fd[i] = -1;
    (void)zr_curl.multi_poll(multi, NULL, 0, 0, NULL);
    for (int i = 0; i < 2; i++)
        if (wake_fd[i] >= 0 &&
            (socket_has_bytes(wake_fd[i]) || fcntl(wake_fd[i], F_SETFD, FD_CLOEXEC) != 0))
            wake_fd[i] = -1;
    return multi;
}
