# SPDX-License-Identifier: GPL-2.0-only
"""The mechanisms of the adaptive window, and how each is switched off: as edits of the kernel's header."""

from foliolab.regret.header import Mechanism

# Edits that more than one mechanism needs.
_NO_RUN_AT_MISSES = (
    ("if (run) { ... } else if", "if"),
    ("unsigned long run = mmap_readahead_run(state, miss);", ""),
)
_NO_RECALL_AT_MARKS = (("} else { size = min(mmap_readahead_run(state, mark), ... return; }", "} else return;"),)
_NO_GAP_READ = (("if (gap >= size || size + gap > miss->max_pages) gap = 0;", "gap = 0;"),)
_NO_TRIAL_AT_MARKS = (("if (stream && mmap_readahead_trial(&state->sweeps, mark, ... return;", ""),)

MECHANISMS = (
    Mechanism(
        "streams",
        "Misses go on where an earlier read ended or began, also one that was forgotten, and reads at marks go on.",
        (
            (
                """read = mmap_readahead_stream(state, miss, &answer->kind); ...
                } else {
                    read = &state->reads[state->next];""",
                "{ read = &state->reads[state->next];",
            ),
            *_NO_RUN_AT_MISSES,
            (
                """for (read = state->reads; read < state->reads + MMAP_READAHEAD_READS; read++)
                    if (read->kind == MMAP_READAHEAD_FORWARD ...
                answer->async_size = answer->size;""",
                "",
            ),
        ),
    ),
    Mechanism(
        "backward streams",
        "Streams may go on before the begin of a read.",
        (
            ("!(forward || miss->index < read->start) ||", "!forward ||"),
            ("if (answer->kind == MMAP_READAHEAD_FORWARD) { answer->start", "{ answer->start"),
            (
                """} else {
                    size = min(size, miss->index + 1);
                    answer->start = miss->index - (size - 1);
                }""",
                "}",
            ),
            (
                """struct mmap_readahead_side *side = forward ? &state->ahead :
                                                                 &state->behind;""",
                "struct mmap_readahead_side *side = &state->ahead;",
            ),
            (
                """unsigned long gap = forward ? miss->index - read->end - 1 :
                                                 read->start - miss->index - 1;""",
                "unsigned long gap = miss->index - read->end - 1;",
            ),
            ("bool forward = answer->kind == MMAP_READAHEAD_FORWARD;", ""),
            ("if (forward && mmap_readahead_alone", "if (mmap_readahead_alone"),
            (
                """read->kind == MMAP_READAHEAD_BACKWARD ?
                       miss->index - read->start : read->end - miss->index;""",
                "read->end - miss->index;",
            ),
        ),
    ),
    Mechanism(
        "gaps",
        "Streams may leave pages out.",
        (
            ("unsigned long gap = min((miss->max_pages + 1) / 2, miss->request_pages);", "unsigned long gap = 1;"),
            *_NO_GAP_READ,
        ),
    ),
    Mechanism("gaps read as well", "What a stream left out before a miss is read with it.", _NO_GAP_READ),
    Mechanism(
        "own fault left out",
        "What the miss itself had mapped does not prove that a page was used.",
        (
            (
                "(!mmap_readahead_own(miss, read, edge) && mmap_readahead_used(miss, edge))",
                "mmap_readahead_used(miss, edge)",
            ),
            ("if (mmap_readahead_own(miss, read, far)) { if (side->quiet < side->patience) return; } else {", "{"),
            (
                "(!mmap_readahead_own(miss, read, near) && mmap_readahead_used(miss, near))",
                "mmap_readahead_used(miss, near)",
            ),
        ),
    ),
    Mechanism(
        "forgotten runs",
        "A stream that is not remembered any more goes on where the pages before a miss or a mark were used.",
        (*_NO_RUN_AT_MISSES, *_NO_RECALL_AT_MARKS),
    ),
    Mechanism(
        "recall at marks",
        "At a mark of a forgotten run, as much is read as is still there of it.",
        _NO_RECALL_AT_MARKS,
    ),
    Mechanism(
        "growth by a quarter",
        "At marks, large requests grow by a quarter instead of twofold.",
        (
            (
                """size = stream->size < mark->request_pages ? 2 * stream->size :
                          stream->size + (stream->size + 3) / 4;""",
                "size = 2 * stream->size;",
            ),
        ),
    ),
    Mechanism(
        "reads under way",
        "Of a page that another thread is about to read, no window is read.",
        (
            ("if (read && answer->kind == MMAP_READAHEAD_SINGLE) return;", ""),
            ("if (mmap_readahead_under_way(miss, read)) { *kind = MMAP_READAHEAD_SINGLE; return read; }", ""),
            ("read->pending = answer->size > 1;", ""),
        ),
    ),
    Mechanism(
        "neighbourhood learns",
        "Single misses read as many pages on either side as have paid, not what a file begins with.",
        (
            ("if (gap < read->size) mmap_readahead_learn_continued(state, miss, side);", ""),
            ("if (read->size && read->kind == MMAP_READAHEAD_SINGLE) { ... }", ""),
        ),
    ),
    Mechanism(
        "near page as proof",
        "The outer half of a window was used if either of two of its pages was.",
        (
            (
                """bool used = mmap_readahead_used(miss, far) ||
                    (!mmap_readahead_own(miss, read, near) &&
                     mmap_readahead_used(miss, near));""",
                "bool used = mmap_readahead_used(miss, far);",
            ),
            ("unsigned long near = far - (long)(far - read->index) * 3 / 8;", ""),
        ),
    ),
    Mechanism(
        "twice as much would do",
        "A miss that a read twice as large would not have held makes no window grow.",
        (("if (gap < read->size) mmap_readahead_learn_continued(", "mmap_readahead_learn_continued("),),
    ),
    Mechanism(
        "smaller windows judge",
        "A read tells of the window of today also if it had no more than half of it.",
        (("if (2 * abs_diff(far, read->index) + 1 <", "if (abs_diff(far, read->index) + 1 !="),),
    ),
    Mechanism(
        "patience",
        "After reads that nobody continued, a window that cannot be judged becomes smaller.",
        (
            ("if (side->quiet < side->patience) return;", "return;"),
            ("side->patience = min(2 * side->patience, MMAP_READAHEAD_MAX_PATIENCE);", ""),
            ("side->quiet = min(side->quiet + 1, MMAP_READAHEAD_MAX_PATIENCE);", ""),
            ("side->quiet = 0; side->continued", "side->continued"),
            ("side->quiet = 0; }", "}"),
        ),
    ),
    Mechanism(
        "patience that doubles",
        "Whenever a window has to grow again, it takes twice as many such reads to make it smaller.",
        (
            ("side->patience = min(2 * side->patience, MMAP_READAHEAD_MAX_PATIENCE);", ""),
            ("side->quiet < side->patience", "side->quiet < MMAP_READAHEAD_PATIENCE"),
        ),
    ),
    Mechanism(
        "region",
        "Aligned blocks of a region that fills up are read.",
        (
            ("} else if (mmap_readahead_fills(state, miss)) { ... } else if", "} else if"),
            ("|| read->kind == MMAP_READAHEAD_FILL", ""),
        ),
    ),
    Mechanism(
        "less for the few",
        "Where misses turn about, regions need less evidence the fewer are like them, and not full yet.",
        (
            ("enough = turns && 3 * open < 2 * nr ? enough * 3 * open / (2 * nr) : need;",
             "enough = need;"),
            ("open += regions->misses[i] < need;", ""),
            ("if (here < need) { ... }", ""),
            ("unsigned int here, i, open = 0;", "unsigned int here, i;"),
        ),
    ),
    Mechanism(
        "full stays full",
        "A region that is filled counts for a full one, however little it took.",
        (("if (here < need) { ... }", ""),),
    ),
    Mechanism(
        "settled",
        "Where single pages have done for long, one miss of eight is judged.",
        (
            (
                """struct mmap_readahead_regions *regions = &state->regions;
                   unsigned long region = miss->index >> regions->shift;
                   if (state->ahead.order ... mmap_readahead_finish(state, miss, NULL, answer);
                   return true;""",
                "return false;",
            ),
        ),
    ),
    Mechanism(
        "near steps left out",
        "Misses close to the one before, in one direction, do not count for their region.",
        (
            ("counts = !near || regions->turns > MMAP_READAHEAD_EIGHTH;", "counts = true;"),
            ("bool near = abs_diff(miss->index, regions->last) <= 3UL * miss->request_pages;", ""),
        ),
    ),
    Mechanism(
        "fits in memory",
        "Where it may have to, memory holds all regions that misses gather in.",
        (("fits = 4ULL * like <= 5ULL * miss->memory_pages;", "fits = true;"),),
    ),
    Mechanism(
        "other files",
        "A region is not filled if other files that cost as much forbid it.",
        (
            ("&& !mmap_readahead_others_forbid(miss, min(miss->file_pages, miss->others_pages))", ""),
            ("|| (fits && mmap_readahead_others_forbid(miss, like))", ""),
        ),
    ),
    Mechanism(
        "beginnings",
        "The first misses of files teach what those of other files read.",
        (
            ("mmap_readahead_begun(state, miss, answer->kind);", ""),
            ("mmap_readahead_begun(state, mark, MMAP_READAHEAD_FORWARD);", ""),
            ("begin->waits = true;", ""),
        ),
    ),
    Mechanism(
        "full price while short",
        "While memory is short, misses in a region have to have cost what reading all of it costs.",
        (("need = is_short ? 8 * enough / 3 : enough;", "need = enough;"),),
    ),
    Mechanism(
        "aging",
        "Of misses in regions, old ones count for less, or for nothing if what they read cannot be there.",
        (
            ("if (regions->shift != shift || regions->nr > miss->cached_pages)", "if (regions->shift != shift)"),
            (
                """if (is_short &&
                    regions->nr >= miss->memory_pages / miss->request_pages)
                    mmap_readahead_age(regions, 1);""",
                "",
            ),
        ),
    ),
    Mechanism(
        "limit by memory",
        "Memory holds two windows of each stream that is remembered.",
        (("return clamp_t(unsigned long, miss->memory_pages / ... miss->max_pages);", "return miss->max_pages;"),),
    ),
    Mechanism(
        "limit while short",
        "While memory is short, a block of a region is worth two requests.",
        (("if (mmap_readahead_short(state)) limit = min(limit, 2UL * miss->request_pages);", ""),),
    ),
    Mechanism(
        "scarcity",
        "While memory is short, saving requests hardly makes windows grow.",
        (
            (
                """unsigned int request = DIV_ROUND_UP(miss->request_pages, mmap_readahead_short(state) ?
                                                       MMAP_READAHEAD_SCARCITY : 1);""",
                "",
            ),
            ("1UL << side->order, request)", "1UL << side->order, miss->request_pages)"),
        ),
    ),
    Mechanism(
        "sweeps",
        "Evicted pages far apart that are needed again are read alone, if memory holds all of these.",
        (
            (
                """} else if (mmap_readahead_alone(state, miss, NULL,
                                               1U << state->ahead.order)) {
                    mmap_readahead_answer_stream(miss, 1, 0, answer);
                } else if (!miss->index""",
                "} else if (!miss->index",
            ),
            ("if (forward && mmap_readahead_alone(state, miss, read, size)) size = 1;", ""),
            *_NO_TRIAL_AT_MARKS,
        ),
    ),
    Mechanism(
        "trial at marks",
        "A read at a mark may be left out, so that a miss tells how far apart pages are needed.",
        _NO_TRIAL_AT_MARKS,
    ),
    Mechanism(
        "small files both sides",
        "In small files the first misses read behind as well.",
        (("if (miss->file_pages <= MMAP_READAHEAD_SMALL_FILE)", "if (0)"),),
    ),
)  # fmt: skip
