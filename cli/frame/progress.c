/*
 * frame/progress.c - the progress of a long command, on stderr, in one of four forms: a
 * bar that redraws one line of a terminal; a line every 10 s for logs; a line with a JSON
 * object every second for other programs; nothing. Bytes that an interrupted command
 * copied before count in the percentage, not in the rate. Commands of less than 10 s
 * write no line to a log, and the bar appears after half a second. Thread class: any
 * thread, one at a time.
 */
#include "frame/frame_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const uint64_t second = 1000000000;

void cli_progress_begin(struct cli_progress *p, struct cli *cli, const char *what,
                        uint64_t total_bytes, uint64_t total_items)
{
    *p = (struct cli_progress){.cli = cli, .what = what};
    p->total_bytes = total_bytes;
    p->total_items = total_items;
    p->began_ns = cli_now_ns();
    p->shown_ns = p->began_ns;
}

/* The fraction that is done, 0 to 1; negative: not known. */
static double share(const struct cli_progress *p)
{
    if (p->total_bytes)
        return (double)p->done_bytes / (double)p->total_bytes;
    if (p->total_items)
        return (double)p->done_items / (double)p->total_items;
    return -1;
}

static double seconds_since(const struct cli_progress *p, uint64_t now)
{
    return (double)(now - p->began_ns) / 1e9;
}

static double rate(const struct cli_progress *p, double elapsed)
{
    uint64_t fresh =
        p->done_bytes > p->skipped_bytes ? p->done_bytes - p->skipped_bytes : 0;

    return elapsed > 0 ? (double)fresh / elapsed : 0;
}

/* The estimated seconds that remain; negative: not known. */
static double remaining_seconds(const struct cli_progress *p, double elapsed)
{
    const double done = share(p), per_second = rate(p, elapsed);

    if (done < 0 || elapsed < 0.2)
        return -1;
    if (!p->total_bytes)
        return done > 0 ? elapsed * (1 - done) / done : -1;
    if (p->done_bytes >= p->total_bytes)
        return per_second > 0 ? 0 : -1;
    return per_second > 0 ? (double)(p->total_bytes - p->done_bytes) / per_second : -1;
}

static void add_time(struct cli_string *s, double seconds)
{
    uint64_t t = seconds < 1e9 ? (uint64_t)(seconds + 0.5) : 999999999;

    if (t >= 3600)
        cli_string_printf(s, "%" PRIu64 ":%02u:%02u", t / 3600, (unsigned)(t / 60 % 60),
                          (unsigned)(t % 60));
    else
        cli_string_printf(s, "%u:%02u", (unsigned)(t / 60), (unsigned)(t % 60));
}

/* "copy  42 %  1.2 GiB of 2.9 GiB  310.0 MiB/s  0:05 left" */
static void add_numbers(const struct cli_progress *p, double elapsed,
                        struct cli_string *s)
{
    char done[16], total[16], speed[16];
    double left = remaining_seconds(p, elapsed);

    cli_bytes_text(p->done_bytes, done);
    cli_bytes_text((uint64_t)rate(p, elapsed), speed);
    if (p->total_bytes)
        cli_string_printf(s, "  %s of %s", done, cli_bytes_text(p->total_bytes, total));
    else if (p->done_bytes)
        cli_string_printf(s, "  %s", done);
    if (p->total_items)
        cli_string_printf(s, "  %" PRIu64 "/%" PRIu64, p->done_items, p->total_items);
    else if (p->done_items)
        cli_string_printf(s, "  %" PRIu64 " object%s", p->done_items,
                          cli_plural(p->done_items));
    if (p->done_bytes)
        cli_string_printf(s, "  %s/s", speed);
    cli_string_add(s, "  ", 2);
    add_time(s, left >= 0 ? left : elapsed);
    if (left >= 0)
        cli_string_add(s, " left", 5);
}

static unsigned terminal_columns(void)
{
    struct winsize size;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

static void show_bar(struct cli_progress *p, double elapsed)
{
    struct cli_string s = {0}, numbers = {0};
    size_t columns = terminal_columns(), cells = 0;
    double done = share(p);

    add_numbers(p, elapsed, &numbers);
    cli_string_printf(&s, "\r%s ", p->what);
    if (done >= 0) {
        size_t used = strlen(p->what) + numbers.n_bytes + 12;

        cells = columns > used + 5 ? columns - used : 0;
        cells = cells > 40 ? 40 : cells;
        done = done > 1 ? 1 : done;
        if (cells)
            cli_string_add(&s, "[", 1);
        for (size_t i = 0; i < cells; i++)
            cli_string_add(&s, (double)i + 0.5 < done * (double)cells ? "#" : "-", 1);
        cli_string_printf(&s, "%s%3.0f %%", cells ? "] " : "", done * 100);
    }
    cli_string_printf(&s, "%s\033[K", numbers.text);
    fwrite(s.text, 1, s.n_bytes, stderr);
    p->width_shown = 1;
    free(s.text);
    free(numbers.text);
}

static void show_line(const struct cli_progress *p, double elapsed)
{
    struct cli_string s = {0};
    double done = share(p);

    cli_string_printf(&s, "%s", p->what);
    if (done >= 0)
        cli_string_printf(&s, " %3.0f %%", done * 100);
    add_numbers(p, elapsed, &s);
    cli_string_add(&s, "\n", 1);
    fwrite(s.text, 1, s.n_bytes, stderr);
    free(s.text);
}

static void show_json(const struct cli_progress *p, double elapsed)
{
    struct cli_string s = {0};
    struct cli_json *j = cli_json_start(p->cli, &s, true);
    double left = remaining_seconds(p, elapsed);

    cli_json_object(j);
    cli_json_text(cli_key(j, "progress"), p->what);
    cli_json_u64(cli_key(j, "done_bytes"), p->done_bytes);
    cli_json_u64(cli_key(j, "total_bytes"), p->total_bytes);
    cli_json_u64(cli_key(j, "done_items"), p->done_items);
    cli_json_u64(cli_key(j, "total_items"), p->total_items);
    cli_json_f64(cli_key(j, "elapsed_s"), elapsed);
    cli_json_f64(cli_key(j, "bytes_per_s"), rate(p, elapsed));
    if (left >= 0)
        cli_json_f64(cli_key(j, "left_s"), left);
    else
        cli_json_null(cli_key(j, "left_s"));
    cli_json_finish(j);
    cli_string_add(&s, "\n", 1);
    fwrite(s.text, 1, s.n_bytes, stderr);
    free(s.text);
}

static void show(struct cli_progress *p, uint64_t now)
{
    double elapsed = seconds_since(p, now);

    p->shown_ns = now;
    if (p->cli->progress == CLI_PROGRESS_BAR)
        show_bar(p, elapsed);
    else if (p->cli->progress == CLI_PROGRESS_LINES)
        show_line(p, elapsed);
    else if (p->cli->progress == CLI_PROGRESS_JSON)
        show_json(p, elapsed);
}

void cli_progress_update(struct cli_progress *p, uint64_t done_bytes, uint64_t done_items)
{
    static const uint64_t tenths[] = {0, 1, 100, 10}; /* none, bar, lines, json */
    uint64_t now;

    if (!p->cli)
        return;
    p->done_bytes = done_bytes;
    p->done_items = done_items;
    if (p->cli->progress == CLI_PROGRESS_NONE)
        return;
    now = cli_now_ns();
    if (now - p->shown_ns < tenths[p->cli->progress] * (second / 10))
        return;
    if (p->cli->progress == CLI_PROGRESS_BAR && !p->width_shown &&
        now - p->began_ns < second / 2)
        return;
    show(p, now);
}

void cli_progress_end(struct cli_progress *p, bool ok)
{
    if (!p->cli)
        return;
    if (ok && p->total_bytes && p->done_bytes < p->total_bytes)
        p->done_bytes = p->total_bytes;
    if (p->cli->progress == CLI_PROGRESS_JSON)
        show(p, cli_now_ns());
    if (p->width_shown) {
        show_bar(p, seconds_since(p, cli_now_ns()));
        fputc('\n', stderr);
    }
    p->cli = NULL;
}
