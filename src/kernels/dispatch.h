// The kernel table: every operation, compiled for every instruction set.
#pragma once
#include <string>

#include "kernels/bfloat16.h"
#include "kernels/codes.h"
#include "kernels/embed.h"
#include "kernels/inference.h"
#include "kernels/int8.h"
#include "kernels/rotary.h"
#include "kernels/sincos.h"

namespace posenc::kernels::inference {
struct WeightsKernels;  // weights.h
}

namespace posenc::kernels {

// The operations compiled for one instruction set. All sets give the same bits, except that in the
// `inference` kernels a set without fused multiply-add rounds twice (is_fused() below), and causal
// attention spreads values that are not finite to other queries (attention_sequence.cpp).
struct Kernels {
  const char* name;
  const embed::GatherKernels& gather;
  const embed::SumRowsKernels& sum_rows;
  const embed::DropoutKernels& dropout;
  const embed::RandomKernels& random;
  const embed::EmbeddingsKernels& embeddings;
  const rotary::RotaryKernels& rotary;
  const sincos::SincosKernels& sincos;
  const inference::WeightsKernels& weights;
  const inference::LinearKernels& linear_many;
};

// With those that the component inference alone uses: they are compiled with it.
struct InferenceKernels : Kernels {
  const inference::LinearKernels& linear_few;
  const inference::LinearKernelsOf<inference::BFloat16>& linear_few_bfloat16;
  const inference::LinearKernelsOf<inference::BFloat16>& linear_many_bfloat16;
  const inference::AttentionKernels& attention_step;
  const inference::SequenceAttentionKernels& attention_sequence;
  const inference::AddNormKernels& add_norm;
  const inference::ActivationKernels& activation;
  const inference::TopkKernels& topk;
  const inference::MaxSimKernels& maxsim;
  const int8::QuantizeKernels& quantize_int8;
  const int8::LinearKernels& linear_int8;
  const inference::SequenceAttentionKernels& attention_int8;
  const bfloat16::RoundKernels& round_bfloat16;
  const bfloat16::LinearKernels& linear_bfloat16;
  const inference::SequenceAttentionKernels& attention_bfloat16;
  const codes::CodesKernels& codes;
};

const Kernels& chosen();                       // those of chosen_isa()
const Kernels* find(const std::string& name);  // null if this processor does not support the set
const InferenceKernels& chosen_inference();
const InferenceKernels* find_inference(const std::string& name);

// The kernels of attention over whole sequences that compute the products in these, for heads of
// this width and at most that many keys, and the scratch that they need.
struct SequenceAttention {
  const inference::SequenceAttentionKernels& kernels;
  int64_t scratch_floats;
};
SequenceAttention sequence_attention(const InferenceKernels& set,
                                     inference::AttentionProducts products, int64_t width,
                                     int64_t keys);

// Whether the set has fused multiply-add.
inline bool is_fused(const Kernels& set) {
  return set.embeddings.embeddings[static_cast<int>(embed::NormRounding::Fused)] != nullptr;
}

}  // namespace posenc::kernels
