/*
 * frame/main.c - main(): parses the options, creates the context, runs the command,
 * closes stdout and returns the exit code. The first SIGINT or SIGTERM sets the
 * object that cancels all calls of the library, and that commands poll, so that the
 * program stops cleanly: objects in the store are complete, and temporary files are
 * removed. The second signal kills the program. SIGPIPE is ignored: a closed pipe is a
 * write error, so temporary files are removed.
 */
#include "frame/frame_int.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

zarr_cancel *cli_cancel;

int cli_is_cancelled(void)
{
    return zarr_cancel_is_set(cli_cancel);
}

/* SIGALRM repeats the signal, because one just before a call that waits has no effect on
 * the call. */
static void on_signal(int number)
{
    struct sigaction a = {.sa_handler = on_signal};

    zarr_cancel_set(cli_cancel);
    sigemptyset(&a.sa_mask);
    sigaction(SIGALRM, &a, NULL);
    alarm(1);
    (void)number; /* SA_RESETHAND: the next SIGINT or SIGTERM kills the program */
}

/* Otherwise a file that the program opens gets the number of a closed standard stream,
 * and has the messages in it. With O_PATH, reads and writes fail as they did before. */
static bool fill_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH) != fd)
            return false;
    return true;
}

/* A signal that the caller has the program ignore, as a shell does for SIGINT in the
 * background, stays ignored. */
static void watch_signal(int number, const struct sigaction *a)
{
    struct sigaction old;

    if (sigaction(number, NULL, &old) != 0 || old.sa_handler != SIG_IGN)
        sigaction(number, a, NULL);
}

static void watch_signals(void)
{
    struct sigaction a = {0};

    a.sa_handler = on_signal;
    a.sa_flags = (int)SA_RESETHAND; /* no SA_RESTART: a signal must end a wait */
    sigemptyset(&a.sa_mask);
    watch_signal(SIGINT, &a);
    watch_signal(SIGTERM, &a);
    a.sa_handler = SIG_IGN;
    a.sa_flags = 0;
    sigaction(SIGPIPE, &a, NULL);
    sigaction(SIGXFSZ, &a, NULL); /* a write over the limit fails with EFBIG */
}

static uint32_t log_level(const struct cli *cli)
{
    const uint32_t level = cli_choice(cli, "log-level"); /* as ZARR_LOG_* */

    if (level)
        return level;
    if (cli->quiet)
        return ZARR_LOG_ERROR;
    if (cli->verbose)
        return cli->verbose > 1 ? ZARR_LOG_DEBUG : ZARR_LOG_INFO;
    return 0; /* the library's default: ZARRC_LOG_LEVEL, or warnings */
}

/* The values of --plugin, NULL-terminated. The caller frees the array. */
static const char **plugin_files(const struct cli *cli)
{
    const int n = cli_count(cli, "plugin");
    const char **files = cli_alloc(((size_t)n + 1) * sizeof *files);

    for (int i = 0; i < n; i++)
        files[i] = cli_text_at(cli, "plugin", i);
    files[n] = NULL;
    return files;
}

/* The limits of the context: those of --untrusted, then each --limit. */
static int read_limits(struct cli *cli, zarr_limits *limits)
{
    zarr_error err = {0};

    if (cli->untrusted)
        zarr_limits_untrusted(limits);
    for (int i = 0; i < cli_count(cli, "limit"); i++)
        if (zarr_limits_parse(limits, cli_text_at(cli, "limit", i), &err))
            return cli_error(cli, CLI_USAGE, NULL, "option --limit: %s", err.message);
    return CLI_OK;
}

static int make_context(struct cli *cli)
{
    const char **plugins = plugin_files(cli);
    /* the program has all elements in host memory, whatever ZARRC_MEMORY says */
    zarr_context_options opts = {.struct_size = sizeof opts,
                                 .device_type = ZARR_DEVICE_CPU};
    zarr_limits limits = {.struct_size = sizeof limits};
    zarr_error err = {0};
    zarr_status st;

    if (read_limits(cli, &limits)) {
        free(plugins);
        return CLI_USAGE;
    }
    opts.limits = &limits;
    opts.log = cli_log;
    opts.log_level = log_level(cli);
    opts.max_threads = cli->max_threads;
    if (cli->memory_bytes) {
        const uint64_t wave = cli->memory_bytes / 8, most = 64u << 20;

        /* the other half is for the program's own buffers: cli_buffer_bytes() */
        opts.memory_bytes = cli->memory_bytes / 2;
        opts.wave_bytes = wave < most ? wave : most;
    }
    opts.plugins = plugins;
    st = zarr_context_create(&cli->ctx, &opts, &err);
    free(plugins);
    if (st == ZARR_ERR_EXISTS) /* two plug-ins register the same name */
        return cli_error(cli, CLI_EXISTS, "Load only one of the two.", "cannot start: %s",
                         err.message);
    return st ? cli_fail(cli, st, &err, "cannot start") : CLI_OK;
}

static int no_command(struct cli *cli)
{
    struct cli_string text = {0};

    cli_help_program(&text);
    fwrite(text.text, 1, text.n_bytes, stderr);
    cli_string_free(&text);
    return cli_error(cli, CLI_USAGE, NULL, "a command is missing");
}

static int run(struct cli *cli, int argc, char **argv)
{
    int rc;

    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        cli->json = cli->json || strcmp(argv[i], "--json") == 0; /* for parse errors */
    rc = cli_options_parse(cli, argc, argv);
    if (!rc)
        rc = cli_options_common(cli);
    if (rc)
        return rc;
    if (cli_flag(cli, "help")) { /* as zarrc help COMMAND */
        const char *name = cli->command ? cli->command->name : NULL;

        cli->args = &name;
        cli->n_args = name ? 1 : 0;
        cli->command = cli_command_find("help");
        return cli->command->run(cli);
    }
    if (!cli->command)
        return no_command(cli);
    if (!(cli->command->flags & CLI_CMD_NO_CONTEXT))
        rc = make_context(cli);
    return rc ? rc : cli->command->run(cli);
}

int main(int argc, char **argv)
{
    static char buffer[1 << 16];
    struct cli cli = {0};
    int rc, end;

    if (!fill_standard_streams() || zarr_cancel_create(&cli_cancel, NULL) != ZARR_OK)
        return CLI_IO;
    watch_signals();
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    rc = run(&cli, argc, argv);
    end = cli_out_finish(&cli);
    if (rc == CLI_OK || rc == CLI_DIFFERENT)
        rc = end ? end : rc;
    if (cli.pipe_closed && (rc == CLI_IO || rc == CLI_PIPE))
        rc = CLI_PIPE;
    if (cli_is_cancelled() && rc != CLI_OK)
        rc = CLI_INTERRUPTED;
    zarr_context_free(cli.ctx);
    cli_options_free(&cli);
    return rc; /* a signal may still come: cli_cancel stays */
}
