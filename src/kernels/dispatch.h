// The kernel table: every operation, compiled for every instruction set.
#pragma once
#include "kernels/embed.h"
#include "kernels/front.h"
#include "kernels/inference.h"
#include "kernels/rotary.h"
#include "kernels/sincos.h"

namespace posenc::kernels {

// The operations compiled for one instruction set. All sets give the same bits, except SSE2 in the
// `inference` kernels: it has no fused multiply-add, and so rounds twice (isa/float_lanes.h).
struct Kernels {
  const char* name;
  const embed::GatherKernels& gather;
  const embed::SumRowsKernels& sum_rows;
  const embed::DropoutKernels& dropout;
  const embed::RandomKernels& random;
  const embed::FrontKernels& front;
  const rotary::RotaryKernels& rotary;
  const inference::LinearKernels& linear_few;
  const inference::LinearKernels& linear_many;
  const inference::AttentionKernels& attention_step;
  const inference::SequenceAttentionKernels& attention_sequence;
  const inference::AddNormKernels& add_norm;
  const inference::ActivationKernels& activation;
  const inference::TopkKernels& topk;
  const sincos::SincosKernels& sincos;
};

const Kernels& chosen();                // those of chosen_isa()
const Kernels* find(const char* name);  // null if this processor does not support the set

}  // namespace posenc::kernels
