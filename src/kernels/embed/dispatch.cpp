#include "kernels/embed/kernels.h"
#include "kernels/isa.h"

namespace posenc::kernels::embed {
namespace {

constexpr Kernels kSse2 = {sse2::gather_kernels, sse2::sum_kernels, sse2::drop_kernels,
                           sse2::random_kernels};
constexpr Kernels kAvx2 = {avx2::gather_kernels, avx2::sum_kernels, avx2::drop_kernels,
                           avx2::random_kernels};
constexpr Kernels kAvx512 = {avx512::gather_kernels, avx512::sum_kernels, avx512::drop_kernels,
                             avx512::random_kernels};
constexpr KernelTable<Kernels> kTable = {{&kSse2, &kAvx2, &kAvx512}};

}  // namespace

const Kernels& kernels() { return kTable.chosen(); }
const Kernels* find_kernels(const char* name) { return kTable.find(name); }

}  // namespace posenc::kernels::embed
