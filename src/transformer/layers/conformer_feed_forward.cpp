#include "posenc/transformer/layers/conformer_feed_forward.h"

#include <ostream>
#include <utility>

#include "transformer/functional/drop.h"
#include "transformer/layers/blocks.h"
#include "transformer/layers/layer_parts.h"

namespace posenc {

ConformerFeedForwardImpl::ConformerFeedForwardImpl(TransformerLayerOptions options_)
    : options(std::move(options_)) {
  ConformerFeedForwardImpl::reset();
}

void ConformerFeedForwardImpl::reset() {
  const LayerDropouts drops = dropouts_of(options);
  norm = register_module("norm", make_norm(options));
  linear1 = register_module("linear1", make_linear1(options));
  dropout = register_module("dropout", torch::nn::Dropout(drops.activation));
  linear2 = register_module("linear2", make_linear2(options));
  dropout2 = register_module("dropout2", torch::nn::Dropout(drops.output));
}

void ConformerFeedForwardImpl::reset_parameters() {
  norm->reset_parameters();
  linear1->reset_parameters();
  linear2->reset_parameters();
}

void ConformerFeedForwardImpl::pretty_print(std::ostream& stream) const {
  stream << "posenc::ConformerFeedForward(d_model=" << options.d_model()
         << ", d_ff=" << options.d_ff() << ")";
}

torch::Tensor ConformerFeedForwardImpl::forward(const torch::Tensor& x) {
  return drop(*dropout2, blocks::run(blocks::network_of(*this), norm->forward(x)));
}

}  // namespace posenc
