/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The little JSON that guest programs need: reading one line that has been
 * read into memory, and writing a string.
 *
 * A reader function advances *at past what it took. Strings are decoded in
 * place, which never grows them, so nothing is allocated.
 */
#ifndef FOLIOLAB_JSON_H
#define FOLIOLAB_JSON_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Take one punctuation mark, or '\0' for the end, and the space before it. */
static inline bool json_take(char **at, char mark)
{
	char *p = *at + strspn(*at, " \t\r\n");

	if (*p != mark)
		return false;
	*at = p + 1;
	return true;
}

static inline bool json_integer(char **at, long *value)
{
	char *end;

	errno = 0;
	*value = strtol(*at, &end, 10);
	if (end == *at || errno)
		return false;
	*at = end;
	return true;
}

/* Decode the four digits of a \uXXXX escape as UTF-8; 0 if there are none. */
static inline size_t json_unicode(const char *digits, char *out)
{
	char hex[5] = "";
	unsigned long c;

	memcpy(hex, digits, strnlen(digits, 4));
	if (strspn(hex, "0123456789abcdefABCDEF") != 4)
		return 0;
	c = strtoul(hex, NULL, 16);
	/* A C string cannot hold NUL; surrogate pairs come as plain UTF-8. */
	if (c == 0 || (c >= 0xd800 && c < 0xe000))
		return 0;
	if (c < 0x80) {
		out[0] = c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = 0xc0 | c >> 6;
		out[1] = 0x80 | (c & 0x3f);
		return 2;
	}
	out[0] = 0xe0 | c >> 12;
	out[1] = 0x80 | (c >> 6 & 0x3f);
	out[2] = 0x80 | (c & 0x3f);
	return 3;
}

/* Take a string and return it decoded, or NULL if there is no valid one. */
static inline char *json_string(char **at)
{
	static const char escapes[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
	char *start, *in, *out;

	if (!json_take(at, '"'))
		return NULL;
	start = in = out = *at;
	while (*in != '"') {
		if (*in == '\0')
			return NULL;
		if (*in != '\\') {
			*out++ = *in++;
			continue;
		}
		in++;
		if (*in == 'u') {
			size_t length = json_unicode(in + 1, out);

			if (!length)
				return NULL;
			out += length;
			in += 5;
		} else {
			const char *found = NULL;

			for (size_t i = 0; i + 1 < sizeof(escapes); i += 2)
				if (escapes[i] == *in)
					found = &escapes[i + 1];
			if (!found)
				return NULL;
			*out++ = *found;
			in++;
		}
	}
	*out = '\0';
	*at = in + 1;
	return start;
}

static inline void json_put_string(FILE *stream, const char *text)
{
	putc('"', stream);
	for (; *text; text++) {
		unsigned char c = *text;

		if (c == '"' || c == '\\')
			fprintf(stream, "\\%c", c);
		else if (c < 0x20)
			fprintf(stream, "\\u%04x", c);
		else
			putc(c, stream);
	}
	putc('"', stream);
}

#endif /* FOLIOLAB_JSON_H */
