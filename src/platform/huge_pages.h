#pragma once

#include <cstddef>

namespace posenc::platform {

/// Asks the system for huge pages under the 2 MB blocks that lie wholly in fresh memory: a hint,
/// which saves most of the page faults of a large array. Nothing where there are none.
void advise_huge_pages(void* fresh, std::size_t bytes);

/// Whether malloc certainly maps this many bytes anew, so that the advice pays.
inline bool worth_huge_pages(std::size_t bytes) { return bytes > (std::size_t{32} << 20); }

}  // namespace posenc::platform
