#include "posenc/positions/nn/sine_position_embedding_2d.h"

#include <ostream>

#include "core/print_fields.h"

namespace posenc {

SinePositionEmbedding2dImpl::SinePositionEmbedding2dImpl(SinePositionEmbedding2dOptions options_)
    : options(options_) {
  SinePositionEmbedding2dImpl::reset();
}

void SinePositionEmbedding2dImpl::reset() { options.validate(); }

void SinePositionEmbedding2dImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "SinePositionEmbedding2d", options,
                       SinePositionEmbedding2dOptions(-1));
}

torch::Tensor SinePositionEmbedding2dImpl::forward(const torch::Tensor& mask) {
  return functional::sine_position_embedding_2d(mask, options);
}

}  // namespace posenc
