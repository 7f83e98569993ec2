/*
 * cf/calendar.c - dates of the CF calendars. An instant counts microseconds, so 64 bits
 * hold twice the years that dates may have. The standard calendar and the Julian one have
 * no year 0; the year before 1 is -1.
 */
#include "cf/cf.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

static const int64_t day_us = INT64_C(86400000000), most_year = 140000;
/* Days from 0000-01-01 of the Gregorian calendar. */
static const int64_t first_gregorian = 578101 /* 1582-10-15 */, epoch = 719528;

/* Whether a list of words has this one. plural: also with an s at its end. */
static bool has_word(const char *list, const char *word, size_t bytes, bool plural)
{
    for (; *list; list += strspn(list, " ")) {
        const size_t n = strcspn(list, " ");
        const bool same = bytes == n || (plural && bytes == n + 1 &&
                                         tolower((unsigned char)word[n]) == 's');

        if (same && strncasecmp(list, word, n) == 0)
            return true;
        list += n;
    }
    return false;
}

bool cf_calendar_find(const char *name, enum cf_calendar *out)
{
    static const char *const names[] = {
        "standard gregorian", "proleptic_gregorian", "julian",
        "noleap 365_day",     "all_leap 366_day",    "360_day"};

    for (*out = CF_STANDARD; name && *out <= CF_360_DAY; ++*out)
        if (has_word(names[*out], name, strlen(name), false))
            return true;
    return !name;
}

/* ---- days ---- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static bool has_year_zero(enum cf_calendar calendar)
{
    return calendar != CF_STANDARD && calendar != CF_JULIAN;
}

/* The calendar whose rules hold on a day. */
static enum cf_calendar rules(enum cf_calendar calendar, int64_t day)
{
    return calendar != CF_STANDARD ? calendar
           : day < first_gregorian ? CF_JULIAN
                                   : CF_PROLEPTIC;
}

static int64_t month_days(enum cf_calendar calendar, int64_t year, int64_t month)
{
    static const int64_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = calendar == CF_ALL_LEAP;

    if (calendar == CF_JULIAN || calendar == CF_PROLEPTIC)
        leap = year % 4 == 0 &&
               (calendar == CF_JULIAN || year % 100 != 0 || year % 400 == 0);
    return calendar == CF_360_DAY ? 30 : days[month - 1] + (month == 2 && leap);
}

/* The day on which a year begins. The Julian year 0 begins two days early. */
static int64_t year_day(enum cf_calendar calendar, int64_t year)
{
    const int64_t before = year - 1;

    switch (calendar) {
    case CF_JULIAN:
        return year * 365 + floor_div(before, 4) - 1;
    case CF_PROLEPTIC:
        return year * 365 + floor_div(before, 4) - floor_div(before, 100) +
               floor_div(before, 400) + 1;
    default:
        return year * (calendar == CF_360_DAY    ? 360
                       : calendar == CF_ALL_LEAP ? 366
                                                 : 365);
    }
}

static int64_t date_day(enum cf_calendar calendar, int64_t year, const int64_t *part)
{
    int64_t day = year_day(calendar, year) + part[CF_DAY] - 1;

    for (int64_t m = 1; m < part[CF_MONTH] && m <= 12; m++)
        day += month_days(calendar, year, m);
    return day;
}

/* Also of dates with a part that is too large by one: of the month after December. */
static int64_t make_instant(enum cf_calendar calendar, const int64_t *p)
{
    const int64_t year = p[CF_YEAR] + (p[CF_YEAR] < 0 && !has_year_zero(calendar));
    int64_t day = date_day(rules(calendar, first_gregorian), year, p);

    if (rules(calendar, day) == CF_JULIAN)
        day = date_day(CF_JULIAN, year, p);
    return (day - epoch) * day_us +
           ((p[CF_HOUR] * 60 + p[CF_MINUTE]) * 60 + p[CF_SECOND]) * 1000000 +
           p[CF_MICROSECOND];
}

int64_t cf_date_instant(enum cf_calendar calendar, const struct cf_date *date)
{
    struct cf_date same;
    int64_t instant;

    if (date->part[CF_YEAR] < -most_year || date->part[CF_YEAR] > most_year)
        return CF_NO_TIME;
    instant = make_instant(calendar, date->part);
    cf_instant_date(calendar, instant, &same);
    return memcmp(&same, date, sizeof same) == 0 ? instant : CF_NO_TIME;
}

void cf_instant_date(enum cf_calendar calendar, int64_t instant, struct cf_date *out)
{
    int64_t day = floor_div(instant, day_us) + epoch, *p = out->part;
    int64_t rest = instant - (day - epoch) * day_us;
    const enum cf_calendar by = rules(calendar, day);
    int64_t year = floor_div(day * 400, year_day(by, 400) - year_day(by, 0)) - 1;

    p[CF_MICROSECOND] = rest % 1000000;
    rest /= 1000000;
    p[CF_SECOND] = rest % 60;
    p[CF_MINUTE] = rest / 60 % 60;
    p[CF_HOUR] = rest / 3600;
    while (year_day(by, year + 1) <= day)
        year++;
    day -= year_day(by, year);
    for (p[CF_MONTH] = 1; day >= month_days(by, year, p[CF_MONTH]); p[CF_MONTH]++)
        day -= month_days(by, year, p[CF_MONTH]);
    p[CF_DAY] = day + 1;
    p[CF_YEAR] = year - (year <= 0 && !has_year_zero(calendar));
}

int64_t cf_period_end(enum cf_calendar calendar, const struct cf_date *date,
                      enum cf_part finest)
{
    struct cf_date next = *date;

    next.part[finest]++;
    if (next.part[CF_YEAR] == 0 && !has_year_zero(calendar))
        next.part[CF_YEAR] = 1;
    return make_instant(calendar, next.part);
}

/* ---- text ---- */

/* Reads a number of least to most digits, which no digit follows. */
static bool digits(const char **at, size_t least, size_t most, int64_t *out)
{
    const size_t n = strspn(*at, "0123456789");

    if (n < least || n > most)
        return false;
    for (*out = 0; isdigit((unsigned char)**at); ++*at)
        *out = *out * 10 + (**at - '0');
    return true;
}

const char *cf_date_parse(const char *text, bool loose, struct cf_date *out,
                          enum cf_part *finest)
{
    static const char *const before[] = {"", "-", "-", "Tt ", ":", ":"};
    const char *at = text + (*text == '-');

    *out = (struct cf_date){.part = {0, 1, 1, 0, 0, 0, 0}};
    if (!digits(&at, loose ? 1 : 4, 6, &out->part[CF_YEAR]))
        return NULL;
    if (*text == '-')
        out->part[CF_YEAR] = -out->part[CF_YEAR];
    *finest = CF_YEAR;
    for (enum cf_part part = CF_MONTH; part <= CF_SECOND; part++) {
        const char *next = at + 1;

        if (!*at || !strchr(before[part], *at) ||
            !digits(&next, loose ? 1 : 2, 2, &out->part[part]))
            return at;
        at = next;
        *finest = part;
    }
    if (*at == '.' && isdigit((unsigned char)at[1])) {
        int64_t unit = 100000;

        for (at++; isdigit((unsigned char)*at); at++, unit /= 10)
            out->part[CF_MICROSECOND] += (*at - '0') * unit;
        *finest = CF_MICROSECOND;
    }
    return at;
}

void cf_instant_print(enum cf_calendar calendar, int64_t instant, struct cli_string *out)
{
    struct cf_date date;
    const int64_t *p = date.part;

    if (instant == CF_NO_TIME) {
        cli_string_add(out, "NaT", 3);
        return;
    }
    cf_instant_date(calendar, instant, &date);
    cli_string_printf(out, "%0*" PRId64 "-%02d-%02dT%02d:%02d:%02d",
                      p[CF_YEAR] < 0 ? 5 : 4, p[CF_YEAR], (int)p[CF_MONTH],
                      (int)p[CF_DAY], (int)p[CF_HOUR], (int)p[CF_MINUTE],
                      (int)p[CF_SECOND]);
    if (p[CF_MICROSECOND])
        cli_string_printf(out, ".%06d", (int)p[CF_MICROSECOND]);
}

/* ---- units ---- */

/* Reads "+05:30", "-6" or "+0530" as minutes; nothing, "Z" and "UTC" are 0. */
static bool read_zone(const char *at, int64_t *minutes)
{
    int64_t hours = 0, rest = 0, sign;

    *minutes = 0;
    at += strspn(at, " ");
    if (!*at || strcasecmp(at, "Z") == 0 || strcasecmp(at, "UTC") == 0 ||
        strcasecmp(at, "GMT") == 0)
        return true;
    sign = *at == '-' ? -1 : 1;
    if (!strchr("+-", *at++) || !digits(&at, 1, 4, &hours))
        return false;
    if (*at == ':' && (at++, !digits(&at, 1, 2, &rest)))
        return false;
    *minutes = sign * (rest + (hours > 99 ? hours / 100 * 60 + hours % 100 : hours * 60));
    return at[strspn(at, " ")] == '\0';
}

/* The microseconds of a unit of this name; 0 if there is none. */
static double unit_length(const char *name, size_t bytes, enum cf_calendar calendar)
{
    static const struct {
        double microseconds;
        const char *names; /* a plural s may follow each */
    } rows[] = {{1e-3, "nanosecond nanosec ns"},
                {1, "microsecond microsec us"},
                {1e3, "millisecond millisec msec ms"},
                {1e6, "second sec s"},
                {6e7, "minute min"},
                {3.6e9, "hour hr h"},
                {8.64e10, "day d"},
                {6.048e11, "week"},
                {30 * 8.64e10, "month"}};
    const size_t n_rows = sizeof rows / sizeof *rows - (calendar != CF_360_DAY);

    for (size_t i = 0; i < n_rows; i++)
        if (has_word(rows[i].names, name, bytes, true))
            return rows[i].microseconds;
    return 0;
}

bool cf_units_parse(const char *text, enum cf_calendar calendar, struct cf_units *out)
{
    const char *at = text + strspn(text, " ");
    const size_t word = strcspn(at, " ");
    struct cf_date date;
    enum cf_part finest;
    int64_t minutes;

    *out = (struct cf_units){.calendar = calendar,
                             .microseconds = unit_length(at, word, calendar)};
    at += word;
    at += strspn(at, " ");
    if (out->microseconds == 0 || strncasecmp(at, "since ", 6) != 0)
        return false;
    at = cf_date_parse(at + 6 + strspn(at + 6, " "), true, &date, &finest);
    if (!at || !read_zone(at, &minutes))
        return false;
    out->since = cf_date_instant(calendar, &date);
    if (out->since == CF_NO_TIME)
        return false;
    out->since -= minutes * 60000000;
    return true;
}

/* As cftime: a float next to a whole second counts as that second. */
int64_t cf_units_instant(const struct cf_units *units, long double value)
{
    const long double limit = 4e18L, exact = value * units->microseconds;
    const long double n = rintl(exact), second = 1e6L * rintl(exact / 1e6L);
    const bool snaps = units->microseconds > 1e3L && fabsl(n - second) == 1;
    const long double t = !snaps ? n : n < second ? ceill(exact) : floorl(exact);

    return t > -limit && t < limit ? (int64_t)t + units->since : CF_NO_TIME;
}
