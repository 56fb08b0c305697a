#include "kernels/dispatch.h"

#include "kernels/isa.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels {
namespace {

#define POSENC_KERNELS(isa, base, runs) POSENC_KERNELS_OF(isa, base),
// In the order of Isa.
constexpr Kernels kTable[] = {POSENC_FOR_EACH_SET(POSENC_KERNELS)};
#undef POSENC_KERNELS

}  // namespace

const Kernels& chosen() { return kTable[static_cast<int>(chosen_isa())]; }

const Kernels* find(const std::string& name) {
  Isa isa;
  return find_isa(name, &isa) ? &kTable[static_cast<int>(isa)] : nullptr;
}

}  // namespace posenc::kernels
