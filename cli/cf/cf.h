/*
 * cf/cf.h - what the CF conventions say about arrays: dates of their calendars
 * (cf/calendar.c), values of packed and of time arrays (cf/decode.c), coordinates
 * (cf/coordinate.c), and regions by name and value (cf/region.c).
 */
#ifndef CLI_CF_H
#define CLI_CF_H

#include "frame/frame.h"

/* ---- dates (calendar.c) ---- */

enum cf_calendar {
    CF_STANDARD, /* Julian before 1582-10-15, Gregorian from then on */
    CF_PROLEPTIC,
    CF_JULIAN,
    CF_NOLEAP,
    CF_ALL_LEAP,
    CF_360_DAY
};
/* Returns false if there is no such calendar; NULL is the standard one. */
bool cf_calendar_find(const char *name, enum cf_calendar *out);

/* Parts of a date, from the coarsest to the finest. */
enum cf_part {
    CF_YEAR,
    CF_MONTH,
    CF_DAY,
    CF_HOUR,
    CF_MINUTE,
    CF_SECOND,
    CF_MICROSECOND
};
struct cf_date {
    int64_t part[7]; /* by CF_* */
};
/* An instant: microseconds since 1970-01-01 of the Gregorian calendar, or since a day of
 * another calendar. No instant: */
#define CF_NO_TIME INT64_MIN

/* The instant of a date; CF_NO_TIME if the calendar lacks it. */
int64_t cf_date_instant(enum cf_calendar calendar, const struct cf_date *date);
void cf_instant_date(enum cf_calendar calendar, int64_t instant, struct cf_date *out);
/* The first instant after a period: after the month, if `finest` is CF_MONTH. */
int64_t cf_period_end(enum cf_calendar calendar, const struct cf_date *date,
                      enum cf_part finest);
/* Reads a date in the form of ISO 8601, or the beginning of one, and sets *finest to its
 * last part. loose: parts may have fewer digits, as in units. Returns the end of the
 * date; NULL if there is none. */
const char *cf_date_parse(const char *text, bool loose, struct cf_date *out,
                          enum cf_part *finest);
/* Appends "2003-07-16T12:00:00", with a fraction if there is one. */
void cf_instant_print(enum cf_calendar calendar, int64_t instant, struct cli_string *out);

/* "days since 1850-01-01" of a calendar. */
struct cf_units {
    enum cf_calendar calendar;
    int64_t since;            /* an instant */
    long double microseconds; /* of one unit */
};
/* Returns false if the text is no unit of time with a reference date. */
bool cf_units_parse(const char *text, enum cf_calendar calendar, struct cf_units *out);
/* The instant of a number; CF_NO_TIME for NaN, or beyond 64 bits. */
int64_t cf_units_instant(const struct cf_units *units, long double value);

/* ---- values (decode.c) ---- */

enum cf_kind {
    CF_STORED, /* decoded values are the stored ones */
    CF_NUMBER, /* numbers that are scaled, masked or of another sign */
    CF_TIME,   /* instants */
    CF_TEXT    /* bytes that are text in UTF-8 */
};
enum {
    CF_LIST_MAX = 64 /* values of an attribute */
};
/* How the attributes of an array say that its elements are decoded. Zero it before use.
 */
struct cf {
    enum cf_kind kind;
    const zarr_dtype *type; /* stored, borrowed */
    const zarr_dtype
        *decoded;         /* of decoded values; times: datetime64[us], text: string */
    uint64_t value_bytes; /* stored bytes of a value; of all its characters, if it */
    bool joins;           /* joins them along the last dimension of the array */
    struct cf_units units;
    double scale, offset, low, high; /* low, high: the valid range */
    bool has_scale, is_masked, is_bool;
    double missing[CF_LIST_MAX + 1]; /* as stored */
    int n_missing;
    double flag[CF_LIST_MAX], mask[CF_LIST_MAX]; /* flag_values, flag_masks */
    int n_flags, n_masks;
    char *meanings; /* flag_meanings; owned, or NULL */
    bool is_longitude, is_latitude;
    char *unit; /* attribute units; owned, or NULL */
};
/* Reads the attributes of an array. type: of its elements, or of a field. */
int cf_find(struct cli *cli, const zarr_array *array, const zarr_dtype *type,
            const char *shown, struct cf *out);
void cf_free(struct cf *cf);
#define CLI_DECODE_OPTION                                                                \
    {                                                                                    \
        "decode", 0, 0, NULL, NULL,                                                      \
            "decode values by the CF conventions, as xarray does: scale_factor, "        \
            "add_offset, missing values, _Unsigned, times, booleans and text in bytes"   \
    }
/* Whether --decode or ZARRC_DECODE=1 is given. */
bool cf_is_wanted(const struct cli *cli);
/* Whether elements are integers or floats, which can be packed. */
bool cf_is_number(const zarr_dtype *type);
/* The decoded value of one stored element: NaN if it is missing. */
double cf_number(const struct cf *cf, const void *element);
/* The instant of one stored element of CF_TIME. */
int64_t cf_time(const struct cf *cf, const void *element);
/* Appends the meanings of a decoded element that has flags, as "cloud|snow". Returns
 * false if there are none. */
bool cf_flags_print(const struct cf *cf, const void *decoded, struct cli_string *out);
/* Decodes n values, which are not CF_STORED, into elements of cf->decoded. Text points
 * into `elements`. */
void cf_decode(const struct cf *cf, const void *elements, uint64_t n, void *out);

/* ---- coordinates (coordinate.c) ---- */

/* The values of a coordinate array. Zero it before use. */
struct cf_coordinate {
    struct cf cf;
    zarr_array *array;
    uint64_t n;
    double *value; /* numbers, instants, or indices of `text`; NaN: missing */
    char **text;   /* n labels of an array of text; else NULL */
    bool is_line;  /* it has one dimension, apart from characters that are joined */
};
/* Finds the array `name` in the group of `path` or in one of the groups above, and reads
 * it. out->array is NULL if there is none, or if its elements are neither numbers nor
 * text. part: NULL, or the part to read, as "10:20", of a coordinate of one dimension
 * with this length; other coordinates then count as none. */
int cf_coordinate_read(struct cli *cli, zarr_store *store, const char *path,
                       const char *name, const char *part, uint64_t length,
                       struct cf_coordinate *out);
void cf_coordinate_free(struct cf_coordinate *c);
/* Appends value i as text. */
void cf_coordinate_print(const struct cf_coordinate *c, uint64_t i,
                         struct cli_string *out);

/* ---- regions (region.c) ---- */

#define CLI_NEAREST_OPTION                                                               \
    {                                                                                    \
        "nearest", 0, 0, NULL, NULL,                                                     \
            "take the nearest point for a value that lies between points of a "          \
            "coordinate"                                                                 \
    }
/* Goes on behind the item of a region, which ends at a comma outside of brackets. Returns
 * the item, which the caller owns, or NULL at the end. */
char *cf_next_item(const char **at);
/* Splits a region without names, or NULL, into one item for each dimension, which the
 * caller owns: "...,3" becomes ":", ":" and "3". */
void cf_region_split(const char *region, int32_t ndim, char **items);
/* Replaces names in the text of a region ("lat@35:70, time=3") by indices along the
 * dimensions of the array. A region without names stays. shown: the node in messages.
 * used: NULL, or one for each item: then only items that name a dimension of the array
 * count, and are marked in it. *region becomes NULL if there are none. */
int cf_region_resolve(struct cli *cli, zarr_store *store, const zarr_array *array,
                      const char *shown, char **region, bool *used);

#endif
