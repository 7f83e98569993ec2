/*
 * fault/stop_at.c - runs a program and stops it before its n-th system call on a store.
 *
 *     stop_at N MARK PROGRAM [ARGUMENT]...
 *
 * A call counts if a path that it names contains MARK, or the path of its open file does.
 * Reads of an open file do not count, because no writer changes an object in place. At
 * the stop it prints "CALL PATH" and reads one byte from stdin: 'c' continues the
 * program, and everything else kills it. At the end it prints the number of calls. N is
 * 0: no stop. The exit code is that of the program, 128 + N after signal N, and 77 if the
 * system forbids ptrace or seccomp. The program reads from and writes to /dev/null.
 *
 * Threads: the other threads of the program stop at their next call that seccomp reports.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SKIPPED = 77,
    NONE = -1,
    CWD = -2
};

/* Where the arguments of a call have its paths: the descriptor of a folder (or CWD), and
 * the text; without a text (NONE) the descriptor is the file itself. */
struct call {
    int nr;
    const char *name;
    int dir, text, dir2, text2;
};

#define FILE_CALL(name, fd)                                                              \
    {                                                                                    \
        SYS_##name, #name, fd, NONE, NONE, NONE                                          \
    }
#define FILES_CALL(name, fd, fd2)                                                        \
    {                                                                                    \
        SYS_##name, #name, fd, NONE, fd2, NONE                                           \
    }
#define AT_CALL(name, dir, text)                                                         \
    {                                                                                    \
        SYS_##name, #name, dir, text, NONE, NONE                                         \
    }
#define TWO_CALL(name, d, t, d2, t2)                                                     \
    {                                                                                    \
        SYS_##name, #name, d, t, d2, t2                                                  \
    }

static const struct call calls[] = {
    AT_CALL(openat, 0, 1),
    AT_CALL(openat2, 0, 1),
    AT_CALL(newfstatat, 0, 1),
    AT_CALL(statx, 0, 1),
    AT_CALL(faccessat, 0, 1),
    AT_CALL(readlinkat, 0, 1),
    AT_CALL(mkdirat, 0, 1),
    AT_CALL(unlinkat, 0, 1),
    AT_CALL(fchmodat, 0, 1),
    AT_CALL(fchownat, 0, 1),
    AT_CALL(utimensat, 0, 1),
    AT_CALL(symlinkat, 1, 2),
    AT_CALL(truncate, CWD, 0),
    TWO_CALL(linkat, 0, 1, 2, 3),
    TWO_CALL(renameat, 0, 1, 2, 3),
    TWO_CALL(renameat2, 0, 1, 2, 3),
    FILE_CALL(getdents64, 0),
    FILE_CALL(write, 0),
    FILE_CALL(writev, 0),
    FILE_CALL(pwrite64, 0),
    FILE_CALL(pwritev, 0),
    FILE_CALL(pwritev2, 0),
    FILE_CALL(ftruncate, 0),
    FILE_CALL(fallocate, 0),
    FILE_CALL(fchmod, 0),
    FILE_CALL(fchown, 0),
    FILE_CALL(fsync, 0),
    FILE_CALL(fdatasync, 0),
    FILE_CALL(syncfs, 0),
    FILE_CALL(sync_file_range, 0),
    FILE_CALL(flock, 0),
    FILE_CALL(fcntl, 0),
    FILES_CALL(copy_file_range, 0, 2),
    FILES_CALL(sendfile, 0, 1),
#ifdef SYS_faccessat2
    AT_CALL(faccessat2, 0, 1),
#endif
#ifdef SYS_open /* machines with the calls that have no descriptor of a folder */
    AT_CALL(open, CWD, 0),
    AT_CALL(creat, CWD, 0),
    AT_CALL(stat, CWD, 0),
    AT_CALL(lstat, CWD, 0),
    AT_CALL(access, CWD, 0),
    AT_CALL(readlink, CWD, 0),
    AT_CALL(mkdir, CWD, 0),
    AT_CALL(rmdir, CWD, 0),
    AT_CALL(unlink, CWD, 0),
    AT_CALL(chmod, CWD, 0),
    AT_CALL(chown, CWD, 0),
    AT_CALL(symlink, CWD, 1),
    TWO_CALL(link, CWD, 0, CWD, 1),
    TWO_CALL(rename, CWD, 0, CWD, 1),
#endif
};

enum {
    N_CALLS = sizeof calls / sizeof *calls
};

/* Lets seccomp report the calls of the table. */
static bool install_filter(void)
{
    struct sock_filter code[N_CALLS + 3];
    struct sock_fprog program = {.len = N_CALLS + 3, .filter = code};

    code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                           offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < N_CALLS; i++)
        code[i + 1] = (struct sock_filter)BPF_JUMP(
            BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i].nr, (uint8_t)(N_CALLS - i), 0);
    code[N_CALLS + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[N_CALLS + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* In the child: becomes the program. */
static _Noreturn void become(char **program)
{
    const int null = open("/dev/null", O_RDWR);

    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
        perror("stop_at: ptrace");
        _exit(SKIPPED);
    }
    raise(SIGSTOP);
    if (!install_filter()) {
        perror("stop_at: seccomp");
        _exit(SKIPPED);
    }
    dup2(null, 0);
    dup2(null, 1);
    execvp(program[0], program);
    perror(program[0]);
    _exit(127);
}

/* ---- paths ----------------------------------------------------------------------- */

/* Reads a text of the program, by parts that do not cross a page. */
static void read_text(pid_t pid, uint64_t at, char *out, size_t size)
{
    size_t n = 0;

    out[0] = 0;
    while (n + 1 < size) {
        const size_t to_page = 4096 - (at + n) % 4096, room = size - 1 - n;
        struct iovec to = {out + n, to_page < room ? to_page : room};
        struct iovec from = {(void *)(uintptr_t)(at + n), to.iov_len};

        if (process_vm_readv(pid, &to, 1, &from, 1, 0) != (ssize_t)to.iov_len)
            break;
        if (memchr(out + n, 0, to.iov_len))
            return;
        n += to.iov_len;
        out[n] = 0;
    }
}

/* The path of an open file or of the working folder, and a slash. */
static size_t read_link(pid_t pid, int fd, char *out, size_t size)
{
    char link[64];
    ssize_t n;

    if (fd == AT_FDCWD)
        snprintf(link, sizeof link, "/proc/%d/cwd", (int)pid);
    else
        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, fd);
    n = readlink(link, out, size - 2);
    if (n <= 0)
        return 0;
    out[n] = '/';
    out[n + 1] = 0;
    return (size_t)n + 1;
}

/* Whether the path of these two arguments contains the mark. */
static bool has_mark(pid_t pid, const uint64_t *args, const int *at, const char *mark,
                     char *path, size_t size)
{
    char text[2048] = "";
    size_t n = 0;

    if (at[0] == NONE)
        return false;
    if (at[1] != NONE && args[at[1]]) {
        read_text(pid, args[at[1]], text, sizeof text);
        if (!text[0]) /* AT_EMPTY_PATH: the stat of an open file */
            return false;
    }
    path[0] = 0;
    if (text[0] != '/')
        n = read_link(pid, at[0] == CWD ? AT_FDCWD : (int)args[at[0]], path, size);
    snprintf(path + n, size - n, "%s", text);
    return strstr(path, mark) != NULL;
}

static bool is_lock(uint64_t command)
{
    return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK ||
           command == F_OFD_SETLKW;
}

/* ---- the program ----------------------------------------------------------------- */

struct trial {
    pid_t program;
    long stop_before, n_calls;
    const char *mark;
    bool is_unable;
};

static void ask(struct trial *t, const char *name, char *path)
{
    char answer = 0;

    for (char *c = path; *c; c++)
        if (*c == '\n')
            *c = '?';
    printf("%s %s\n", name, path);
    fflush(stdout);
    if (read(0, &answer, 1) != 1 || answer != 'c')
        kill(t->program, SIGKILL);
}

static void on_call(struct trial *t, pid_t pid)
{
    struct __ptrace_syscall_info info = {0};
    char path[4352];

    if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof info, &info) <= 0) {
        t->is_unable = errno != ESRCH; /* ESRCH: it was killed */
        return;
    }
    for (size_t i = 0; i < N_CALLS; i++) {
        const struct call *c = &calls[i];
        const uint64_t *args = info.seccomp.args;

        if ((uint64_t)c->nr != info.seccomp.nr)
            continue;
        if (c->nr == SYS_fcntl && !is_lock(args[1]))
            return;
        if (!has_mark(pid, args, &c->dir, t->mark, path, sizeof path) &&
            !has_mark(pid, args, &c->dir2, t->mark, path, sizeof path))
            return;
        if (++t->n_calls == t->stop_before)
            ask(t, c->name, path);
        return;
    }
}

/* Returns the exit code of the program. */
static int follow(struct trial *t)
{
    int status = 0;

    for (;;) {
        const pid_t pid = waitpid(-1, &status, __WALL);
        int signal_no = 0;

        if (pid < 0 && errno == EINTR)
            continue;
        if (pid < 0)
            return 1;
        if (pid == t->program && WIFEXITED(status))
            return WEXITSTATUS(status);
        if (pid == t->program && WIFSIGNALED(status))
            return 128 + WTERMSIG(status);
        if (!WIFSTOPPED(status))
            continue;
        if (status >> 16 == PTRACE_EVENT_SECCOMP)
            on_call(t, pid);
        else if (status >> 16 == 0 && WSTOPSIG(status) != SIGSTOP)
            signal_no = WSTOPSIG(status);
        if (t->is_unable)
            kill(t->program, SIGKILL);
        ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)signal_no);
    }
}

int main(int argc, char **argv)
{
    const long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE |
                         PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC |
                         PTRACE_O_EXITKILL;
    struct trial t = {0};
    int status = 0, code;

    if (argc < 4) {
        fprintf(stderr, "usage: stop_at N MARK PROGRAM [ARGUMENT]...\n");
        return 2;
    }
    t.stop_before = strtol(argv[1], NULL, 10);
    t.mark = argv[2];
    t.program = fork();
    if (t.program == 0)
        become(argv + 3);
    if (t.program < 0 || waitpid(t.program, &status, 0) != t.program)
        return 1;
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    if (ptrace(PTRACE_SETOPTIONS, t.program, NULL, (void *)options) != 0) {
        perror("stop_at: ptrace");
        return SKIPPED;
    }
    ptrace(PTRACE_CONT, t.program, NULL, NULL);
    code = follow(&t);
    printf("%ld\n", t.n_calls);
    if (t.is_unable)
        fprintf(stderr,
                "stop_at: the kernel lacks PTRACE_GET_SYSCALL_INFO (Linux 5.3)\n");
    return t.is_unable ? SKIPPED : code;
}
