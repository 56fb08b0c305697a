#include "kernels/dispatch.h"

#include "kernels/isa.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels {
namespace {

#define POSENC_KERNELS(isa)                    \
  {#isa,                                       \
   embed::isa::gather_kernels,                 \
   embed::isa::sum_rows_kernels,               \
   embed::isa::dropout_kernels,                \
   embed::isa::random_kernels,                 \
   embed::isa::front_kernels,                  \
   embed::isa::rotary_kernels,                 \
   inference::isa::linear_few_kernels,         \
   inference::isa::linear_many_kernels,        \
   inference::isa::attention_step_kernels,     \
   inference::isa::attention_sequence_kernels, \
   inference::isa::add_norm_kernels,           \
   inference::isa::activation_kernels,         \
   inference::isa::topk_kernels,               \
   sincos::isa::sincos_kernels}
// In the order of Isa.
constexpr Kernels kTable[kIsaCount] = {POSENC_KERNELS(sse2), POSENC_KERNELS(avx2),
                                       POSENC_KERNELS(avx512)};
#undef POSENC_KERNELS

}  // namespace

const Kernels& chosen() { return kTable[static_cast<int>(chosen_isa())]; }

const Kernels* find(const char* name) {
  Isa isa;
  return find_isa(name, &isa) ? &kTable[static_cast<int>(isa)] : nullptr;
}

}  // namespace posenc::kernels
