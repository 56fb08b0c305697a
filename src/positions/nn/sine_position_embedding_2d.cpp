#include "posenc/positions/nn/sine_position_embedding_2d.h"

#include <ostream>

namespace posenc {

SinePositionEmbedding2dImpl::SinePositionEmbedding2dImpl(SinePositionEmbedding2dOptions options_)
    : options(options_) {
  SinePositionEmbedding2dImpl::reset();
}

void SinePositionEmbedding2dImpl::reset() { options.validate(); }

void SinePositionEmbedding2dImpl::pretty_print(std::ostream& stream) const {
  stream << "posenc::SinePositionEmbedding2d(d_model=" << options.d_model()
         << ", temperature=" << options.temperature();
  if (!options.normalize()) {
    stream << ", normalize=false";
  } else {
    stream << ", scale=" << options.scale();
    if (options.offset() != 0.0) stream << ", offset=" << options.offset();
  }
  stream << ")";
}

torch::Tensor SinePositionEmbedding2dImpl::forward(const torch::Tensor& mask) {
  return functional::sine_position_embedding_2d(mask, options);
}

}  // namespace posenc
