/* SPDX-License-Identifier: GPL-2.0-only */
/* The shortest function there is: text to call into, and nothing else. */
#ifndef FOLIOLAB_STUB_H
#define FOLIOLAB_STUB_H

#define STUB_BYTES	4

/* The instruction that returns from a function. */
static const unsigned char stub[STUB_BYTES] = {
#if defined(__x86_64__)
	0xc3, 0xc3, 0xc3, 0xc3
#elif defined(__aarch64__)
	0xc0, 0x03, 0x5f, 0xd6
#else
#error "What is a return instruction here?"
#endif
};

#endif /* FOLIOLAB_STUB_H */
