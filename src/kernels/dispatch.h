// One table: operation x instruction set.
#pragma once
#include "kernels/embed.h"
#include "kernels/inference.h"
#include "kernels/sincos.h"

namespace posenc::kernels {

// Every operation, compiled for one instruction set. All sets give the same bits, but for SSE2 in
// what `inference` holds: it has no fused multiply-add, and rounds twice (isa/float_lanes.h).
struct Kernels {
  const char* name;
  const embed::GatherKernels& gather;
  const embed::SumKernels& sum_rows;
  const embed::DropKernels& dropout;
  const embed::RandomKernels& random;
  const inference::LinearKernels& linear_few;
  const inference::LinearKernels& linear_many;
  const inference::AttentionKernels& attention_step;
  const inference::SequenceAttentionKernels& attention_sequence;
  const inference::AddNormKernels& add_norm;
  const inference::ActivationKernels& activation;
  const inference::TopkKernels& topk;
  const sincos::SincosKernels& sincos;
};

const Kernels& chosen();                // the set that isa.h chooses
const Kernels* find(const char* name);  // null where this processor does not run the set

}  // namespace posenc::kernels
