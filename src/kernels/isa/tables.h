// The kernel tables that the sources in this folder define in the namespace of each instruction
// set, for dispatch.cpp.
#pragma once
#include "kernels/bfloat16.h"
#include "kernels/codes.h"
#include "kernels/embed.h"
#include "kernels/inference.h"
#include "kernels/int8.h"
#include "kernels/rotary.h"
#include "kernels/sets.h"
#include "kernels/sincos.h"

namespace posenc::kernels::inference {
struct WeightsKernels;  // weights.h
}

#define POSENC_DECLARE(isa, base, runs)                                        \
  namespace posenc::kernels::embed::isa {                                      \
  extern const GatherKernels gather_kernels;                                   \
  extern const SumRowsKernels sum_rows_kernels;                                \
  extern const DropoutKernels dropout_kernels;                                 \
  extern const RandomKernels random_kernels;                                   \
  extern const EmbeddingsKernels embeddings_kernels;                           \
  extern const rotary::RotaryKernels rotary_kernels;                           \
  }                                                                            \
  namespace posenc::kernels::inference::isa {                                  \
  extern const LinearKernels linear_few_kernels;                               \
  extern const LinearKernels linear_many_kernels;                              \
  extern const LinearKernelsOf<BFloat16> linear_few_bfloat16_kernels;          \
  extern const LinearKernelsOf<BFloat16> linear_many_bfloat16_kernels;         \
  extern const AttentionKernels attention_step_kernels;                        \
  extern const SequenceAttentionKernels attention_sequence_kernels;            \
  extern const AddNormKernels add_norm_kernels;                                \
  extern const ActivationKernels activation_kernels;                           \
  extern const TopkKernels topk_kernels;                                       \
  extern const MaxSimKernels maxsim_kernels;                                   \
  extern const WeightsKernels weights_kernels;                                 \
  }                                                                            \
  namespace posenc::kernels::sincos::isa {                                     \
  extern const SincosKernels sincos_kernels;                                   \
  }                                                                            \
  namespace posenc::kernels::codes::isa {                                      \
  extern const CodesKernels codes_kernels;                                     \
  }                                                                            \
  namespace posenc::kernels::int8::isa {                                       \
  extern const QuantizeKernels quantize_int8_kernels;                          \
  extern const LinearKernels linear_int8_kernels;                              \
  extern const inference::SequenceAttentionKernels attention_int8_kernels;     \
  }                                                                            \
  namespace posenc::kernels::bfloat16::isa {                                   \
  extern const RoundKernels round_bfloat16_kernels;                            \
  extern const LinearKernels linear_bfloat16_kernels;                          \
  extern const inference::SequenceAttentionKernels attention_bfloat16_kernels; \
  }
POSENC_FOR_EACH_SET(POSENC_DECLARE)
#undef POSENC_DECLARE

// The members of dispatch.h's Kernels for a set, in their order.
#define POSENC_KERNELS_OF(isa, base) \
  {#isa,                             \
   embed::base::gather_kernels,      \
   embed::base::sum_rows_kernels,    \
   embed::base::dropout_kernels,     \
   embed::base::random_kernels,      \
   embed::base::embeddings_kernels,  \
   embed::base::rotary_kernels,      \
   sincos::base::sincos_kernels,     \
   inference::base::weights_kernels, \
   inference::base::linear_many_kernels}
