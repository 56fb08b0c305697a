#include "posenc/positions/nn/fourier_features.h"

#include <ostream>

#include "core/print_fields.h"

namespace posenc {

FourierFeaturesImpl::FourierFeaturesImpl(FourierFeaturesOptions options_) : options(options_) {
  FourierFeaturesImpl::reset();
}

void FourierFeaturesImpl::reset() { options.validate(); }

void FourierFeaturesImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "FourierFeatures", options, FourierFeaturesOptions(-1, -1));
}

torch::Tensor FourierFeaturesImpl::forward(const torch::Tensor& x) {
  return functional::fourier_features(x, options);
}

}  // namespace posenc
