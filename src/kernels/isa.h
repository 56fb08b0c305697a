// Selects the kernels' instruction set, from what the processor supports and from POSENC_ISA.
#pragma once
#include <string>
#include <vector>

#include "kernels/sets.h"

namespace posenc::kernels {

#define POSENC_ENUMERATOR(set, base, runs) set,
enum class Isa { POSENC_FOR_EACH_SET(POSENC_ENUMERATOR) };
#undef POSENC_ENUMERATOR

// The names of the sets that this processor supports, slowest first.
std::vector<std::string> set_names();

// Looks up a set by name. Returns false for an unknown name, and for a set that this processor does
// not support.
bool find_isa(const std::string& name, Isa* found);

// Returns the set that the environment variable POSENC_ISA selects if its value is `wish`: the set
// of that name, or if it is null or empty the best one that this processor supports. Throws
// std::invalid_argument if it names none of set_names().
Isa isa_for(const char* wish);

// isa_for(POSENC_ISA), determined once.
Isa chosen_isa();

}  // namespace posenc::kernels
