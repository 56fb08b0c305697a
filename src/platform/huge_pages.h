#pragma once

#include <cstddef>

namespace posenc::platform {

/// Asks the system for huge pages for all whole 2 MB blocks of freshly allocated memory: a hint,
/// which saves most of the page faults of a large array. Does nothing on systems without huge
/// pages.
void advise_huge_pages(void* fresh, std::size_t bytes);

/// Whether malloc is certain to map new pages for this many bytes, so that the hint pays off: with
/// malloc's own header they exceed the largest threshold that glibc sets for itself.
inline bool benefits_from_huge_pages(std::size_t bytes) { return bytes >= std::size_t{32} << 20; }

}  // namespace posenc::platform
