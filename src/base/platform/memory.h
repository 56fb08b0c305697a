#pragma once

#include <cstddef>
#include <cstdint>

namespace posenc::platform {

/// Asks the system for huge pages for all whole 2 MB blocks of freshly allocated memory: a hint,
/// which saves most of the page faults of a large array. Does nothing on systems without huge
/// pages.
void advise_huge_pages(void* fresh, std::size_t bytes);

/// Whether this many bytes hold whole huge pages and are often fresh from the system, as glibc maps
/// every block of 32 MB or more, and at first smaller ones. For memory in use the hint is one
/// system call without effect.
inline bool benefits_from_huge_pages(std::size_t bytes) { return bytes >= std::size_t{4} << 20; }

/// Buffers that a thread keeps from call to call, so that no layer allocates.
enum class Scratch { Panel, Hidden, Branch, Scores, Rotation, Bytes, Queries };
constexpr int kScratches = 7;

/// This thread's buffer of at least `floats`, aligned to a cache line; its contents persist until
/// this thread requests a larger one of the same kind.
float* scratch(Scratch kind, int64_t floats);

}  // namespace posenc::platform
