#pragma once

/// @file
/// What a shared posenc exports: the names of its public headers, and nothing else.

/// Stands on the namespace blocks of the public headers. posenc itself is compiled with
/// -fvisibility=hidden, so that names which are declared elsewhere stay inside.
#define POSENC_EXPORT __attribute__((visibility("default")))
