#include "kernels/exact/kernels.h"
#include "kernels/isa.h"

namespace posenc::kernels::exact {
namespace {

constexpr KernelTable<Kernels> kTable = {{&sse2::kernels, &avx2::kernels, &avx512::kernels}};

}  // namespace

const Kernels& kernels() { return kTable.chosen(); }
const Kernels* find_kernels(const char* name) { return kTable.find(name); }

}  // namespace posenc::kernels::exact
