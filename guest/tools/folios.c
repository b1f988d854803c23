// SPDX-License-Identifier: GPL-2.0-only
/*
 * Print in which folios programs have their files mapped, and how many TLB
 * entries their text takes.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>

#define PROBE	"folios"
#include "folios.h"
#include "options.h"
#include "tracer.h"

static struct env {
	bool all;
	bool run;
	bool json;
	bool text;
	const char **pids;
	size_t nr_pids;
	unsigned int block_orders[FOLIO_BLOCKS];
	unsigned int nr_blocks;
	char **command;
} env;

static uint64_t nr_processes;

static unsigned int parse_block(const char *option, const char *text)
{
	uint64_t page_size = sysconf(_SC_PAGESIZE);
	uint64_t bytes = parse_bytes(option, text);

	if (bytes & (bytes - 1) || bytes < 2 * page_size ||
	    bytes / page_size >> FOLIO_ORDERS)
		fail(2, "--%s takes a power of two of at least %" PRIu64
		     " bytes, not '%s'.", option, 2 * page_size, text);
	return folio_order(bytes / page_size);
}

static void add_block(const char *option, const char *text)
{
	if (env.nr_blocks == FOLIO_BLOCKS)
		fail(2, "--%s can be given %d times.", option, FOLIO_BLOCKS);
	env.block_orders[env.nr_blocks++] = parse_block(option, text);
}

static void add_wanted(const char *option, const char *text)
{
	if (parse_number(option, text, 1) > INT32_MAX)
		fail(2, "--%s %s is too much.", option, text);
	env.pids = realloc(env.pids, (env.nr_pids + 1) * sizeof(*env.pids));
	if (!env.pids)
		fail_io("No memory for the arguments");
	env.pids[env.nr_pids++] = text;
}

static struct probe_option options[] = {
	{ "pid", "PID", "this process; can be repeated", .call = add_wanted },
	{ "all", NULL,
	  "all processes: a page that two of them map counts twice",
	  .flag = &env.all },
	{ "run", NULL,
	  "run COMMAND and look at each process that it starts, just before "
	  "the process ends; what they print goes to the standard error, and "
	  "the exit status is that of COMMAND",
	  .flag = &env.run },
	{ "text", NULL, "only executable mappings", .flag = &env.text },
	{ "cont", "SIZE",
	  "count aligned blocks of this size within one folio, instead of 64K "
	  "(2M where pages are 16K or 64K); can be repeated",
	  .call = add_block },
	{ "json", NULL, "print one JSON object", .flag = &env.json },
	{ 0 }
};

static const struct usage usage = {
	.about =
"[OPTION]... --pid PID | --all | --run -- COMMAND...\n"
"Print in which folios of the page cache programs have files mapped.\n",
	.options = options,
	.notes =
"Rows, as in the kernel's tools/mm/thpmaps but for PTEs and PMDs together:\n"
"  file-thp-aligned-SIZE    whole folios at addresses that are a multiple of SIZE\n"
"  file-thp-unaligned-SIZE  whole folios at other addresses\n"
"  file-thp-partial         folios of which not all is mapped, or not in order\n"
"  file-cont-aligned-SIZE   aligned blocks within one folio, which arm64 can map\n"
"                           with one TLB entry (contpte)\n"
"Shares are of all file memory that is mapped. What is missing from them is in\n"
"folios of one page. Needs root.\n"
"\n"
"Examples:\n"
"  folios --all --text\n"
"      the text of all that is running\n"
"  folios --run -- make -j2\n"
"      a build, with its short-lived compilers\n",
	.command = true,
};

static void parse_arguments(int argc, char **argv)
{
	env.command = argv + parse_options(argc, argv, &usage);
	if ((env.nr_pids > 0) + env.all + env.run != 1)
		fail(2, "One of --pid, --all and --run is needed; see --help.");
	if (env.run && !*env.command)
		fail(2, "--run takes a command; see --help.");
	if (!env.run && *env.command)
		fail(2, "'%s' is not an option; see --help.", *env.command);
}

static void add_pid(struct folios *folios, const char *pid)
{
	enum folios_status status = folios_add(folios, atoi(pid));

	if (status == FOLIOS_GONE)
		fail(1, "There is no process %s.", pid);
	if (status)
		fail(1, "%s", folios_sentence(status));
	nr_processes++;
}

static void add_all(struct folios *folios)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;

	if (!directory)
		fail_io("/proc");
	while ((entry = readdir(directory))) {
		uint64_t before = folios->mapped;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		/* Some end while we look: they are not there, then. */
		folios_add(folios, atoi(entry->d_name));
		nr_processes += folios->mapped > before;
	}
	closedir(directory);
}

static void add_ending(pid_t tid, void *folios)
{
	nr_processes += folios_add(folios, tid) == FOLIOS_OK;
}

static double share(const struct folios *folios, uint64_t pages)
{
	return folios->mapped ? (double)pages / folios->mapped : 0;
}

static void print_row(const struct folios *folios, const char *kind,
		      unsigned int order, uint64_t pages)
{
	static bool has_rows;
	uint64_t bytes = pages * folios->page_size;
	char name[64];

	if (kind[0])
		snprintf(name, sizeof(name), "file-%s-%zukB", kind,
			 (folios->page_size << order) / 1024);
	else
		snprintf(name, sizeof(name), "file-thp-partial");
	if (env.json)
		printf("%s{\"name\": \"%s\", \"bytes\": %" PRIu64
		       ", \"share\": %.6f}", has_rows ? ", " : "", name, bytes,
		       share(folios, pages));
	else if (pages)
		printf("%-28s %12" PRIu64 " %7.1f\n", name, bytes / 1024,
		       100 * share(folios, pages));
	has_rows = true;
}

static void print_rows(const struct folios *folios)
{
	unsigned int highest = folios->pmd_order;

	for (unsigned int order = 1; order < FOLIO_ORDERS; order++)
		if (folios->aligned[order] + folios->unaligned[order] &&
		    order > highest)
			highest = order;
	for (unsigned int order = 1; order <= highest; order++)
		print_row(folios, "thp-aligned", order, folios->aligned[order]);
	for (unsigned int order = 1; order <= highest; order++)
		print_row(folios, "thp-unaligned", order,
			  folios->unaligned[order]);
	print_row(folios, "", 0, folios->partial);
	for (unsigned int i = 0; i < folios->nr_blocks; i++)
		print_row(folios, "cont-aligned", folios->block_orders[i],
			  folios->blocks[i]);
}

static void print_json(const struct folios *folios, int status)
{
	double in_contpte = folios->text ?
		(double)folios->text_in_contpte / folios->text : 0;

	printf("{\"page_size\": %zu, \"processes\": %" PRIu64 ", \"rows\": [",
	       folios->page_size, nr_processes);
	print_rows(folios);
	printf("], \"mapped_bytes\": %" PRIu64 ", \"text\": {\"bytes\": %" PRIu64
	       ", \"contpte_share\": %.6f, \"tlb_entries_uncoalesced\": %" PRIu64
	       ", \"tlb_entries_contpte\": %" PRIu64
	       ", \"tlb_entries_four_pages\": %" PRIu64
	       ", \"tlb_entries\": %" PRIu64 "}, \"status\": %d}\n",
	       folios->mapped * folios->page_size,
	       folios->text * folios->page_size, in_contpte,
	       folios->tlb.uncoalesced, folios->tlb.contpte, folios->tlb.groups,
	       folios->tlb.ours, status);
}

static void print_table(const struct folios *folios)
{
	size_t kib = folios->page_size / 1024;

	printf("%-28s %12s %7s\n", "folios", "KiB", "%");
	print_rows(folios);
	printf("%-28s %12" PRIu64 " %7.1f\n",
	       env.text ? "all mapped text" : "all mapped files",
	       folios->mapped * kib, 100 * share(folios, folios->mapped));
	printf("\nText mapped by %" PRIu64 " process%s: %" PRIu64
	       " KiB. TLB entries for it:\n", nr_processes,
	       nr_processes == 1 ? "" : "es", folios->text * kib);
	printf("%-28s %12" PRIu64 "\n", "without coalescing",
	       folios->tlb.uncoalesced);
	printf("contpte, blocks of %4zu KiB  %12" PRIu64 "\n",
	       kib << folios->contpte_order, folios->tlb.contpte);
	printf("%-28s %12" PRIu64 "\n", "four pages at a time",
	       folios->tlb.groups);
}

int main(int argc, char **argv)
{
	enum folios_status known;
	struct folios folios;
	int status = 0;

	parse_arguments(argc, argv);
	known = folios_init(&folios);
	if (known)
		fail(1, "%s", folios_sentence(known));
	folios.text_only = env.text;
	if (env.nr_blocks) {
		folios.nr_blocks = env.nr_blocks;
		memcpy(folios.block_orders, env.block_orders,
		       sizeof(folios.block_orders));
	}

	for (size_t i = 0; i < env.nr_pids; i++)
		add_pid(&folios, env.pids[i]);
	if (env.all)
		add_all(&folios);
	if (env.run)
		status = trace_command(env.command, NULL, add_ending,
				       &folios);
	if (env.json)
		print_json(&folios, status);
	else
		print_table(&folios);
	if (fflush(stdout))
		fail_io("The table could not be written");
	return status;
}
