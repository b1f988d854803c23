/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The options of a program as one table, of which arguments are parsed and the
 * text of --help is made.
 */
#ifndef FOLIOLAB_OPTIONS_H
#define FOLIOLAB_OPTIONS_H

#include <getopt.h>

#include "probe.h"

#define MAX_OPTIONS	32
#define HELP_WIDTH	80
#define HELP_COLUMN	24

struct probe_option {
	const char *name;
	const char *argument;	/* as the help calls it; NULL: there is none */
	const char *help;	/* without what is set already, which is added */
	bool needed;

	/* What the option sets. */
	bool *flag;
	const char **text;
	uint64_t *number;	/* from .least to .most, which 0 leaves open */
	uint64_t *bytes;	/* suffixes K, M, G */
	double *fraction;	/* above 0, up to 1 */
	unsigned int *choice;	/* which of the names it is */
	void *row;		/* a pointer to the row with that name */
	void (*call)(const char *option, const char *text);

	uint64_t least, most;
	/*
	 * To choose from. Rows of a table, "stride" bytes each, begin with a
	 * name, and NULL ends them; 0 is a list of nothing but names.
	 */
	const char *const *names;
	size_t stride;
	const char *const *whats;	/* of each, for the help; can be NULL */

	bool given;
};

#define NAMES_OF(rows)	.names = &(rows)[0].name, .stride = sizeof((rows)[0])
#define ROWS_OF(rows)	NAMES_OF(rows), .whats = &(rows)[0].what

/* What forget_caches() takes. */
#define DROP_CACHES(wanted)						\
	{ "drop-caches", NULL,						\
	  "empty all of the kernel's caches before, not only those of the " \
	  "file; needs root", .flag = (wanted) }

/* What --help says: in front of the options, of them, and after them. */
struct usage {
	const char *about;
	struct probe_option *options;	/* one without a name ends them */
	const char *notes;
	bool command;	/* is what other arguments are */
};

static inline uint64_t parse_bytes(const char *option, const char *text)
{
	static const char suffixes[] = "KMG";
	char digits[32] = "";
	size_t length = strlen(text);
	const char *suffix = length ? strchr(suffixes, text[length - 1]) : NULL;
	int shift = suffix ? (suffix - suffixes + 1) * 10 : 0;
	uint64_t value;

	snprintf(digits, sizeof(digits), "%.*s",
		 (int)(suffix ? length - 1 : length), text);
	value = parse_number(option, digits, 1);
	if (value > (uint64_t)INT64_MAX >> shift)
		fail(2, "--%s %s is too much.", option, text);
	return value << shift;
}

static inline double parse_fraction(const char *option, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value > 0 && value <= 1))
		fail(2, "--%s takes a number above 0 and up to 1, not '%s'.",
		     option, text);
	return value;
}

/* The text that the number'th row has in the place of "first". */
static inline const char *const *text_in_row(const struct probe_option *option,
					     const char *const *first,
					     unsigned int number)
{
	size_t stride = option->stride ? option->stride : sizeof(*first);

	return (const void *)((const char *)first + number * stride);
}

static inline void choose(const struct probe_option *option, const char *text)
{
	const char *const *name;
	unsigned int i = 0;

	while (*(name = text_in_row(option, option->names, i)) &&
	       strcmp(*name, text))
		i++;
	if (!*name)
		fail(2, "--%s has no value '%s'; see --help.", option->name,
		     text);
	if (option->choice)
		*option->choice = i;
	if (option->row)
		memcpy(option->row, &name, sizeof(name));
}

static inline void take_option(struct probe_option *option, const char *text)
{
	const char *name = option->name;

	option->given = true;
	if (option->flag)
		*option->flag = true;
	if (option->text)
		*option->text = text;
	if (option->number)
		*option->number = parse_number(name, text, option->least);
	if (option->number && option->most && *option->number > option->most)
		fail(2, "--%s goes up to %" PRIu64 ".", name, option->most);
	if (option->bytes)
		*option->bytes = parse_bytes(name, text);
	if (option->fraction)
		*option->fraction = parse_fraction(name, text);
	if (option->names)
		choose(option, text);
	if (option->call)
		option->call(name, text);
}

/* "left", and the words of a text in the column beside it. */
static inline void print_column(const char *left, const char *text)
{
	int at = printf("%-*s", HELP_COLUMN - 1, left);

	if (at >= HELP_COLUMN)
		at = HELP_WIDTH;	/* no room beside it: below */
	while (*text) {
		int length = strcspn(text, " ");

		if (at + 1 + length > HELP_WIDTH)
			at = printf("\n%*s", HELP_COLUMN - 1, "") - 1;
		at += printf(" %.*s", length, text);
		text += length + strspn(text + length, " ");
	}
	printf("\n");
}

static inline void print_option(const struct probe_option *option)
{
	char left[80], text[800], set[80] = "";

	if (option->number && *option->number)
		snprintf(set, sizeof(set), " (default %" PRIu64 ")", *option->number);
	if (option->text && *option->text && **option->text)
		snprintf(set, sizeof(set), " (default %s)", *option->text);
	snprintf(left, sizeof(left), "  --%s %s", option->name,
		 option->argument ?: "");
	snprintf(text, sizeof(text), "%s%s", option->help, set);
	print_column(left, text);
	for (unsigned int i = 0; option->whats; i++) {
		const char *name = *text_in_row(option, option->names, i);

		if (!name)
			break;
		snprintf(left, sizeof(left), "      %s", name);
		snprintf(text, sizeof(text), "%s%s",
			 *text_in_row(option, option->whats, i),
			 option->choice && *option->choice == i ?
				 " (default)" : "");
		print_column(left, text);
	}
}

static inline noreturn void print_usage(const struct usage *usage)
{
	printf("Usage: " PROBE " %s\n", usage->about);
	for (struct probe_option *option = usage->options; option->name; option++)
		print_option(option);
	print_column("  --help", "print this text");
	if (usage->notes)
		printf("\n%s", usage->notes);
	exit(0);
}

static inline bool option_given(const struct usage *usage, const char *name)
{
	const struct probe_option *option = usage->options;

	while (strcmp(option->name, name))
		option++;
	return option->given;
}

/* Set what arguments say, and tell which is the first one of a command. */
static inline int parse_options(int argc, char **argv,
				const struct usage *usage)
{
	struct option known[MAX_OPTIONS + 2] = { 0 };
	int count, index, status;

	for (count = 0; usage->options[count].name; count++) {
		known[count].name = usage->options[count].name;
		if (usage->options[count].argument)
			known[count].has_arg = required_argument;
	}
	known[count].name = "help";
	/* The options of a command are its own. */
	while ((status = getopt_long(argc, argv, "+", known, &index)) != -1) {
		if (status)
			exit(2);	/* getopt has said why */
		if (index == count)
			print_usage(usage);
		take_option(&usage->options[index], optarg);
	}
	if (optind < argc && !usage->command)
		fail(2, "'%s' is not an option; see --help.", argv[optind]);
	for (int i = 0; i < count; i++)
		if (usage->options[i].needed && !usage->options[i].given)
			fail(2, "--%s is missing; see --help.", known[i].name);
	return optind;
}

#endif /* FOLIOLAB_OPTIONS_H */
