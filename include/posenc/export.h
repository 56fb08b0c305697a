#pragma once

/// @file
/// A shared posenc exports the names in its public headers and nothing else.

/// Marks the namespaces of the public headers for export. posenc itself is compiled with
/// -fvisibility=hidden, so names declared anywhere else are not exported.
#define POSENC_EXPORT __attribute__((visibility("default")))
