#include "kernels/isa.h"

#include <cstdlib>
#include <stdexcept>

#include "base/platform/processor.h"

namespace posenc::kernels {
namespace {

struct Set {
  Isa isa;
  const char* name;
  bool runs;  // on this processor
};

// Slowest first.
std::vector<Set> sets() {
#define POSENC_SET(set, base, runs) {Isa::set, #set, runs},
  return {POSENC_FOR_EACH_SET(POSENC_SET)};
#undef POSENC_SET
}

Isa best() {
  Isa isa = Isa::generic;
  for (const Set& set : sets())
    if (set.runs) isa = set.isa;
  return isa;
}

}  // namespace

std::vector<std::string> set_names() {
  std::vector<std::string> names;
  for (const Set& set : sets())
    if (set.runs) names.emplace_back(set.name);
  return names;
}

bool find_isa(const std::string& name, Isa* found) {
  for (const Set& set : sets()) {
    if (set.name != name || !set.runs) continue;
    *found = set.isa;
    return true;
  }
  return false;
}

Isa isa_for(const char* wish) {
  if (wish == nullptr || *wish == '\0') return best();
  Isa isa;
  if (find_isa(wish, &isa)) return isa;
  std::string names;
  for (const std::string& name : set_names()) names += (names.empty() ? "" : ", ") + name;
  throw std::invalid_argument(
      "[kernels] POSENC_ISA must name an instruction set that this processor has: " + names +
      ". Got \"" + wish + "\"");
}

Isa chosen_isa() {
  static const Isa isa = isa_for(std::getenv("POSENC_ISA"));
  return isa;
}

}  // namespace posenc::kernels
