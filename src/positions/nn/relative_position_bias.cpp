#include "posenc/positions/nn/relative_position_bias.h"

#include <torch/nn/init.h>
#include <torch/types.h>

#include <ostream>

#include "core/check.h"
#include "core/print_fields.h"
#include "core/torch_internals/without_memory.h"
#include "posenc/core/skip_init.h"
#include "posenc/positions/relative/bias.h"

namespace posenc {

RelativePositionBiasImpl::RelativePositionBiasImpl(RelativePositionBiasOptions options_)
    : options(std::move(options_)) {
  RelativePositionBiasImpl::reset();
}

void RelativePositionBiasImpl::reset() {
  check_positive("RelativePositionBias", "num_heads", options.num_heads());
  const int64_t rows = relative_rows(options.index());
  TORCH_CHECK_VALUE(rows > 0,
                    "[RelativePositionBias] the index must have a number of rows, at least 1. Got ",
                    rows);
  {
    const torch_internals::WithMemory has_memory;
    relative_index(torch::zeros({0}, torch::kLong), options.index());  // checks its members
  }
  weight = register_parameter("weight", torch::empty({rows, options.num_heads()}));
  if (!SkipInit::is_active()) reset_parameters();
}

void RelativePositionBiasImpl::reset_parameters() { torch::nn::init::normal_(weight); }

void RelativePositionBiasImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "RelativePositionBias", options,
                       RelativePositionBiasOptions(relative::Shift{-1}, -1));
}

torch::Tensor RelativePositionBiasImpl::forward(int64_t queries, int64_t keys, int64_t offset) {
  return relative_position_bias(weight, queries, keys, options.index(), offset);
}

torch::Tensor RelativePositionBiasImpl::at_positions(const torch::Tensor& queries,
                                                     const torch::Tensor& keys) {
  return relative_position_bias(weight, queries, keys, options.index());
}

}  // namespace posenc
