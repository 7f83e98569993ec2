/*
 * cf/calendar.c - dates of the CF calendars. An instant counts microseconds since
 * 1970-01-01 of its own calendar, so 64 bits hold twice the years that dates may have.
 * The standard calendar and the Julian one have no year 0; the year before 1 is -1.
 */
#include "cf/cf.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

static const int64_t day_us = INT64_C(86400000000), most_year = 140000;

bool cf_calendar_find(const char *name, enum cf_calendar *out)
{
    static const struct {
        const char *name;
        enum cf_calendar calendar;
    } rows[] = {{"standard", CF_STANDARD},
                {"gregorian", CF_STANDARD},
                {"proleptic_gregorian", CF_PROLEPTIC},
                {"julian", CF_JULIAN},
                {"noleap", CF_NOLEAP},
                {"365_day", CF_NOLEAP},
                {"all_leap", CF_ALL_LEAP},
                {"366_day", CF_ALL_LEAP},
                {"360_day", CF_360_DAY}};

    *out = CF_STANDARD;
    for (size_t i = 0; name && i < sizeof rows / sizeof *rows; i++)
        if (strcasecmp(name, rows[i].name) == 0) {
            *out = rows[i].calendar;
            return true;
        }
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

/* Days since 1970-01-01 of the Gregorian calendar. Years begin in March, so that the day
 * after a leap day begins one: era years have era_days, and century_gap is 1 if every
 * hundredth year has no leap day. */
static int64_t solar_days(bool julian, int64_t year, int64_t month, int64_t day)
{
    const int64_t y = month <= 2 ? year - 1 : year, n = julian ? 4 : 400;
    const int64_t era = floor_div(y, n), rest = y - era * n;
    const int64_t in_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

    return julian ? era * 1461 + rest * 365 + in_year - 719470
                  : era * 146097 + rest * 365 + rest / 4 - rest / 100 + in_year - 719468;
}

static void solar_date(bool julian, int64_t days, int64_t *date)
{
    const int64_t n = julian ? 1461 : 146097;
    const int64_t at = days + (julian ? 719470 : 719468), era = floor_div(at, n);
    const int64_t rest = at - era * n;
    const int64_t year = julian
                             ? (rest - rest / 1460) / 365
                             : (rest - rest / 1460 + rest / 36524 - rest / 146096) / 365;
    const int64_t in_year = rest - (365 * year + (julian ? 0 : year / 4 - year / 100));
    const int64_t m = (5 * in_year + 2) / 153;

    date[CF_DAY] = in_year - (153 * m + 2) / 5 + 1;
    date[CF_MONTH] = m < 10 ? m + 3 : m - 9;
    date[CF_YEAR] = year + era * (julian ? 4 : 400) + (date[CF_MONTH] <= 2);
}

static int64_t month_days(enum cf_calendar calendar, int64_t year, int64_t month)
{
    static const int64_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = calendar == CF_ALL_LEAP;

    if (calendar == CF_360_DAY)
        return 30;
    if (calendar == CF_JULIAN || (calendar == CF_STANDARD && year <= 1582))
        leap = year % 4 == 0;
    else if (calendar == CF_PROLEPTIC || calendar == CF_STANDARD)
        leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

/* Days in the months before, in calendars whose years are all the same. */
static int64_t days_before(enum cf_calendar calendar, int64_t month)
{
    int64_t n = 0;

    for (int64_t m = 1; m < month; m++)
        n += month_days(calendar, 1, m);
    return n;
}

static int64_t date_days(enum cf_calendar calendar, int64_t year, int64_t month,
                         int64_t day)
{
    const int64_t first_gregorian = -141427; /* 1582-10-15 */
    int64_t days;

    switch (calendar) {
    case CF_STANDARD:
        days = solar_days(false, year, month, day);
        return days >= first_gregorian ? days : solar_days(true, year, month, day);
    case CF_PROLEPTIC:
    case CF_JULIAN:
        return solar_days(calendar == CF_JULIAN, year, month, day);
    default:
        return (year - 1970) * days_before(calendar, 13) + days_before(calendar, month) +
               day - 1;
    }
}

int64_t cf_date_instant(enum cf_calendar calendar, const struct cf_date *date)
{
    const int64_t *p = date->part;
    int64_t year = p[CF_YEAR];

    if (year < -most_year || year > most_year || (year == 0 && !has_year_zero(calendar)))
        return CF_NO_TIME;
    if (year < 0 && !has_year_zero(calendar))
        year++;
    if (p[CF_MONTH] < 1 || p[CF_MONTH] > 12 || p[CF_DAY] < 1 ||
        p[CF_DAY] > month_days(calendar, year, p[CF_MONTH]) || p[CF_HOUR] > 23 ||
        p[CF_MINUTE] > 59 || p[CF_SECOND] > 59)
        return CF_NO_TIME;
    if (calendar == CF_STANDARD && year == 1582 && p[CF_MONTH] == 10 && p[CF_DAY] > 4 &&
        p[CF_DAY] < 15)
        return CF_NO_TIME;
    return date_days(calendar, year, p[CF_MONTH], p[CF_DAY]) * day_us +
           ((p[CF_HOUR] * 60 + p[CF_MINUTE]) * 60 + p[CF_SECOND]) * 1000000 +
           p[CF_MICROSECOND];
}

void cf_instant_date(enum cf_calendar calendar, int64_t instant, struct cf_date *out)
{
    const int64_t days = floor_div(instant, day_us);
    int64_t rest = instant - days * day_us, *p = out->part;

    p[CF_MICROSECOND] = rest % 1000000;
    rest /= 1000000;
    p[CF_SECOND] = rest % 60;
    p[CF_MINUTE] = rest / 60 % 60;
    p[CF_HOUR] = rest / 3600;
    if (calendar <= CF_JULIAN) {
        solar_date(calendar == CF_JULIAN || (calendar == CF_STANDARD && days < -141427),
                   days, p);
    } else {
        const int64_t n = days_before(calendar, 13), year = floor_div(days, n);

        p[CF_YEAR] = year + 1970;
        p[CF_DAY] = days - year * n + 1;
        for (p[CF_MONTH] = 1; p[CF_DAY] > month_days(calendar, 1, p[CF_MONTH]);
             p[CF_MONTH]++)
            p[CF_DAY] -= month_days(calendar, 1, p[CF_MONTH]);
    }
    if (p[CF_YEAR] <= 0 && !has_year_zero(calendar))
        p[CF_YEAR]--;
}

int64_t cf_period_end(enum cf_calendar calendar, const struct cf_date *date,
                      enum cf_part finest)
{
    static const int64_t length[] = {INT64_C(86400000000), INT64_C(3600000000), 60000000,
                                     1000000, 1};
    struct cf_date next = *date;
    int64_t end;

    if (finest >= CF_DAY)
        return cf_date_instant(calendar, date) + length[finest - CF_DAY] - 1;
    if (finest == CF_MONTH && next.part[CF_MONTH] < 12) {
        next.part[CF_MONTH]++;
    } else {
        next.part[CF_MONTH] = 1;
        next.part[CF_YEAR]++;
    }
    if (next.part[CF_YEAR] == 0 && !has_year_zero(calendar))
        next.part[CF_YEAR] = 1;
    end = cf_date_instant(calendar, &next);
    return end == CF_NO_TIME ? INT64_MAX : end - 1;
}

enum cf_part cf_instant_part(int64_t instant)
{
    return instant % day_us == 0                ? CF_DAY
           : instant % INT64_C(3600000000) == 0 ? CF_HOUR
           : instant % 60000000 == 0            ? CF_MINUTE
           : instant % 1000000 == 0             ? CF_SECOND
                                                : CF_MICROSECOND;
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

/* Reads a fraction of a second as microseconds. */
static void fraction(const char **at, int64_t *out)
{
    int64_t unit = 100000;

    for (*out = 0; isdigit((unsigned char)**at); ++*at, unit /= 10)
        *out += (**at - '0') * unit;
}

const char *cf_date_parse(const char *text, bool loose, struct cf_date *out,
                          enum cf_part *finest)
{
    static const char *const before[] = {"", "-", "-", "Tt ", ":", ":"};
    const size_t least = loose ? 1 : 2;
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
            !digits(&next, least, 2, &out->part[part]))
            return at;
        at = next;
        *finest = part;
    }
    if (*at == '.' && isdigit((unsigned char)at[1])) {
        at++;
        fraction(&at, &out->part[CF_MICROSECOND]);
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
    if (hours > 99) {
        rest = hours % 100;
        hours /= 100;
    } else if (*at == ':') {
        at++;
        if (!digits(&at, 1, 2, &rest))
            return false;
    }
    *minutes = sign * (hours * 60 + rest);
    return at[strspn(at, " ")] == '\0';
}

static bool read_unit(const char *word, size_t bytes, enum cf_calendar calendar,
                      long double *microseconds)
{
    static const struct {
        const char *names; /* between spaces; a plural s may follow */
        double microseconds;
    } rows[] = {{" nanosecond nanosec ns ", 1e-3},
                {" microsecond microsec us ", 1},
                {" millisecond millisec msec ms ", 1e3},
                {" second sec s ", 1e6},
                {" minute min ", 6e7},
                {" hour hr h ", 3.6e9},
                {" day d ", 8.64e10},
                {" week ", 6.048e11}};
    char name[24];

    for (size_t i = 0; i < bytes && i < sizeof name - 3; i++)
        name[i + 1] = (char)tolower((unsigned char)word[i]);
    if (bytes == 0 || bytes > sizeof name - 3)
        return false;
    name[0] = ' ';
    for (int plural = 0; plural < 2; plural++) {
        if (plural && (bytes < 2 || name[bytes] != 's'))
            return false;
        bytes -= (size_t)plural;
        memcpy(name + 1 + bytes, " ", 2);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            if (strstr(rows[i].names, name)) {
                *microseconds = rows[i].microseconds;
                return true;
            }
        if (calendar == CF_360_DAY && strcmp(name, " month ") == 0) {
            *microseconds = 30 * (long double)day_us;
            return true;
        }
    }
    return false;
}

bool cf_units_parse(const char *text, enum cf_calendar calendar, struct cf_units *out)
{
    const char *at = text + strspn(text, " ");
    const size_t word = strcspn(at, " ");
    struct cf_date date;
    enum cf_part finest;
    int64_t minutes;

    *out = (struct cf_units){.calendar = calendar};
    if (!read_unit(at, word, calendar, &out->microseconds))
        return false;
    at += word;
    at += strspn(at, " ");
    if (strncasecmp(at, "since ", 6) != 0)
        return false;
    at += 6 + strspn(at + 6, " ");
    at = cf_date_parse(at, true, &date, &finest);
    if (!at || !read_zone(at, &minutes))
        return false;
    out->since = cf_date_instant(calendar, &date);
    if (out->since == CF_NO_TIME)
        return false;
    out->since -= minutes * 60000000;
    return true;
}

int64_t cf_units_instant(const struct cf_units *units, long double value)
{
    const long double limit = 4e18L, n = roundl(value * units->microseconds);

    return n > -limit && n < limit ? (int64_t)n + units->since : CF_NO_TIME;
}
