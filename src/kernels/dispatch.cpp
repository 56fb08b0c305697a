#include "kernels/dispatch.h"

#include "kernels/isa.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels {
namespace {

#define POSENC_KERNELS(isa, runs)              \
  {#isa,                                       \
   embed::isa::gather_kernels,                 \
   embed::isa::sum_rows_kernels,               \
   embed::isa::dropout_kernels,                \
   embed::isa::random_kernels,                 \
   embed::isa::embeddings_kernels,             \
   embed::isa::rotary_kernels,                 \
   inference::isa::linear_few_kernels,         \
   inference::isa::linear_many_kernels,        \
   inference::isa::attention_step_kernels,     \
   inference::isa::attention_sequence_kernels, \
   inference::isa::add_norm_kernels,           \
   inference::isa::activation_kernels,         \
   inference::isa::topk_kernels,               \
   sincos::isa::sincos_kernels},
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
