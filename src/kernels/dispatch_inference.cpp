// The kernels of the component inference, beside those that all have.
#include "kernels/dispatch.h"
#include "kernels/isa.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels {
namespace {

#define POSENC_KERNELS(isa, base, runs)           \
  {POSENC_KERNELS_OF(isa, base),                  \
   inference::base::linear_few_kernels,           \
   inference::base::linear_few_bfloat16_kernels,  \
   inference::base::linear_many_bfloat16_kernels, \
   inference::base::attention_step_kernels,       \
   inference::base::attention_sequence_kernels,   \
   inference::base::add_norm_kernels,             \
   inference::base::activation_kernels,           \
   inference::base::topk_kernels,                 \
   inference::base::maxsim_kernels,               \
   int8::isa::quantize_int8_kernels,              \
   int8::isa::linear_int8_kernels,                \
   int8::isa::attention_int8_kernels,             \
   bfloat16::isa::round_bfloat16_kernels,         \
   bfloat16::isa::linear_bfloat16_kernels,        \
   bfloat16::isa::attention_bfloat16_kernels,     \
   codes::base::codes_kernels},
// In the order of Isa.
constexpr InferenceKernels kInferenceTable[] = {POSENC_FOR_EACH_SET(POSENC_KERNELS)};
#undef POSENC_KERNELS

}  // namespace

const InferenceKernels& chosen_inference() {
  return kInferenceTable[static_cast<int>(chosen_isa())];
}

const InferenceKernels* find_inference(const std::string& name) {
  Isa isa;
  return find_isa(name, &isa) ? &kInferenceTable[static_cast<int>(isa)] : nullptr;
}

SequenceAttention sequence_attention(const InferenceKernels& set,
                                     inference::AttentionProducts products, int64_t width,
                                     int64_t keys) {
  using inference::AttentionProducts;
  if (products == AttentionProducts::BFloat16)
    return {set.attention_bfloat16, bfloat16::attention_floats(width, keys)};
  // The sums of wider heads might not fit in 32 bits.
  if (products == AttentionProducts::Int8Scores && width <= int8::kMostInner)
    return {set.attention_int8, int8::attention_floats(width, keys)};
  return {set.attention_sequence, inference::sequence_floats(width, keys)};
}

}  // namespace posenc::kernels
