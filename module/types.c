// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether functions take what the module expects, and structures are as large, by the BTF of
 * the kernel that runs. Symbols have versions, but four of the functions are not exported. The
 * kernel's own functions for BTF are not for modules, but anybody may read the file.
 */
#include <linux/backing-dev.h>
#include <linux/btf.h>
#include <linux/cgroup.h>
#include <linux/fs.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/part_stat.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>
#include <linux/xarray.h>

#include "types.h"

#define BTF_FILE	"/sys/kernel/btf/vmlinux"

/**
 * struct known_structure - a structure that the module reads
 * @name: of the structure
 * @size: bytes
 */
struct known_structure {
	const char *name;
	size_t size;
};

#define KNOWN(structure) { #structure, sizeof(struct structure) }

static const struct known_structure structures[] = {
	KNOWN(address_space),
	KNOWN(backing_dev_info),
	KNOWN(block_device),
#ifdef CONFIG_CGROUPS
	KNOWN(cgroup),
	KNOWN(css_set),
	KNOWN(kernfs_node),
#endif
	KNOWN(disk_stats),
	KNOWN(file),
	KNOWN(file_ra_state),
	KNOWN(folio),
	KNOWN(gendisk),
	KNOWN(inode),
#ifdef CONFIG_MEMCG
	KNOWN(lruvec),
	KNOWN(mem_cgroup),
#endif
	KNOWN(readahead_control),
	KNOWN(super_block),
	KNOWN(task_struct),
	KNOWN(vm_area_struct),
	KNOWN(vm_fault),
	KNOWN(xa_node),
};

/**
 * struct kernel_types - what BTF tells
 * @file: its contents
 * @types: where each type begins, by its number; that of number 0, void, is NULL
 * @nr: how many there are, with void
 * @names: all names, one after the other
 * @names_size: bytes of these
 */
struct kernel_types {
	void *file;
	const struct btf_type **types;
	unsigned int nr;
	const char *names;
	size_t names_size;
};

static unsigned int kind_of(const struct btf_type *type)
{
	return BTF_INFO_KIND(type->info);
}

/* What follows a type, in bytes; -1 if nobody knew of that kind when this was written. */
static long size_behind(const struct btf_type *type)
{
	size_t nr = BTF_INFO_VLEN(type->info);

	switch (kind_of(type)) {
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return 0;
	case BTF_KIND_INT:
		return sizeof(u32);
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return nr * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return nr * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return nr * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return nr * sizeof(struct btf_param);
	case BTF_KIND_VAR:
		return sizeof(struct btf_var);
	case BTF_KIND_DATASEC:
		return nr * sizeof(struct btf_var_secinfo);
	case BTF_KIND_DECL_TAG:
		return sizeof(struct btf_decl_tag);
	default:
		return -1;
	}
}

/* The type behind one, or NULL if that is the last, or cannot be told. */
static const struct btf_type *next_type(const struct btf_type *type, const void *end)
{
	long behind = size_behind(type);
	const void *next = (const void *)(type + 1) + behind;

	return behind < 0 || next + sizeof(*type) > end ? NULL : next;
}

/* Find where each type begins. False if it cannot be told, or there is no memory. */
static bool number_types(struct kernel_types *known, const void *begin, const void *end)
{
	const struct btf_type *type;
	unsigned int number = 1;

	known->nr = 1;
	for (type = begin; type; type = next_type(type, end))
		known->nr++;
	known->types = vzalloc(array_size(known->nr, sizeof(*known->types)));
	if (!known->types)
		return false;
	for (type = begin; type; type = next_type(type, end))
		known->types[number++] = type;
	type = known->types[number - 1];
	return size_behind(type) >= 0 && (void *)(type + 1) + size_behind(type) == end;
}

/*
 * Read the file into @known. kernel_read_file() is for what the kernel is to trust, which
 * security modules ask about. Returns bytes, 0 if there is no file, or no memory.
 */
static size_t read_file(struct kernel_types *known)
{
	struct file *file = filp_open(BTF_FILE, O_RDONLY, 0);
	loff_t size, at = 0;
	ssize_t n = 1;

	if (IS_ERR(file))
		return 0;
	size = i_size_read(file_inode(file));
	known->file = size > 0 ? vmalloc(size) : NULL;
	while (known->file && at < size && n > 0)
		n = kernel_read(file, known->file + at, size - at, &at);
	filp_close(file, NULL);
	return known->file ? at : 0;
}

/* False if the kernel tells no types, or in a way that is not known here. */
static bool read_types(struct kernel_types *known)
{
	const struct btf_header *header;
	size_t size = read_file(known);
	const void *begin, *end;

	if (size < sizeof(*header))
		return false;
	header = known->file;
	begin = known->file + header->hdr_len + header->type_off;
	end = begin + header->type_len;
	known->names = known->file + header->hdr_len + header->str_off;
	known->names_size = header->str_len;
	if (header->magic != BTF_MAGIC || header->version != BTF_VERSION ||
	    begin + sizeof(struct btf_type) > end || end > known->file + size ||
	    !known->names_size || known->names + known->names_size > (char *)known->file + size ||
	    known->names[known->names_size - 1])
		return false;
	return number_types(known, begin, end);
}

static void free_types(struct kernel_types *known)
{
	vfree(known->types);
	vfree(known->file);
}

static const char *name_of(const struct kernel_types *known, const struct btf_type *type)
{
	return type->name_off < known->names_size ? known->names + type->name_off : "";
}

static const struct btf_type *find(const struct kernel_types *known, unsigned int kind,
				   const char *name)
{
	unsigned int number;

	for (number = 1; number < known->nr; number++) {
		if (kind_of(known->types[number]) == kind &&
		    !strcmp(name_of(known, known->types[number]), name))
			return known->types[number];
	}
	return NULL;
}

/* The type of a number, or what it is another name for; NULL for void. */
static const struct btf_type *resolve(const struct kernel_types *known, unsigned int number)
{
	const struct btf_type *type = NULL;
	unsigned int names;

	for (names = 0; names < 16 && number < known->nr; names++) {
		type = known->types[number];
		if (!type)
			break;
		switch (kind_of(type)) {
		case BTF_KIND_TYPEDEF:
		case BTF_KIND_VOLATILE:
		case BTF_KIND_CONST:
		case BTF_KIND_RESTRICT:
		case BTF_KIND_TYPE_TAG:
			number = type->type;
			continue;
		}
		break;
	}
	return type;
}

static bool points_to(const struct kernel_types *known, unsigned int number, const char *name)
{
	const struct btf_type *type = resolve(known, number);

	if (!type || kind_of(type) != BTF_KIND_PTR)
		return false;
	type = resolve(known, type->type);
	return type && kind_of(type) == BTF_KIND_STRUCT && !strcmp(name_of(known, type), name);
}

static int check_function(const struct kernel_types *known, const struct known_function *expected)
{
	const struct btf_type *type = find(known, BTF_KIND_FUNC, expected->name);
	const struct btf_param *parameters;
	unsigned int i;

	type = type ? resolve(known, type->type) : NULL;
	if (!type || kind_of(type) != BTF_KIND_FUNC_PROTO) {
		pr_err("This kernel does not tell what %s() takes.\n", expected->name);
		return -EOPNOTSUPP;
	}
	parameters = (const void *)(type + 1);
	for (i = 0; i < MAX_ARGUMENTS && expected->arguments[i]; i++) {
		if (i < BTF_INFO_VLEN(type->info) &&
		    points_to(known, parameters[i].type, expected->arguments[i]))
			continue;
		pr_err("This kernel's %s() does not take a struct %s * as argument %u.\n",
		       expected->name, expected->arguments[i], i + 1);
		return -EOPNOTSUPP;
	}
	return 0;
}

static int check_structure(const struct kernel_types *known, const struct known_structure *expected)
{
	const struct btf_type *type = find(known, BTF_KIND_STRUCT, expected->name);

	if (type && type->size == expected->size)
		return 0;
	pr_err("This kernel's struct %s has %u bytes, not the %zu of its headers.\n",
	       expected->name, type ? type->size : 0, expected->size);
	return -EOPNOTSUPP;
}

int check_types(const struct known_function *functions)
{
	struct kernel_types known = {};
	unsigned int i;
	int err = 0;

	if (read_types(&known)) {
		for (; !err && functions->name; functions++)
			err = check_function(&known, functions);
		for (i = 0; !err && i < ARRAY_SIZE(structures); i++)
			err = check_structure(&known, &structures[i]);
	} else {
		pr_info("This kernel does not tell its types, so that they are not compared.\n");
	}
	free_types(&known);
	return err;
}
