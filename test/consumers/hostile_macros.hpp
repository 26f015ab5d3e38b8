// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Macros that headers of systems and frameworks are known to define.
#define WIN32_LEAN_AND_MEAN
#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))
#define small char
#define near
#define far
#define interface struct
#define IN
#define OUT
#define ERROR 0
#define NO_ERROR 0
#define DELETE 0x10000
#define DEBUG 1
#define TRUE 1
#define FALSE 0
#define I (1.0fi)
#define B0 0
#define None 0L
#define Bool int
#define Status int
#define Success 0
#define Always 2
#define check(x) ((void)(x))
#define verify(x) ((void)(x))
#define require(x) ((void)(x))
#define major(x) ((x) >> 8)
#define minor(x) ((x)&255)
#define unix 1
#define linux 1
