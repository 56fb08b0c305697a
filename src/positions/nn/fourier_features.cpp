#include "posenc/positions/nn/fourier_features.h"

#include <ostream>

namespace posenc {

FourierFeaturesImpl::FourierFeaturesImpl(FourierFeaturesOptions options_) : options(options_) {
  FourierFeaturesImpl::reset();
}

void FourierFeaturesImpl::reset() { options.validate(); }

void FourierFeaturesImpl::pretty_print(std::ostream& stream) const {
  stream << "posenc::FourierFeatures(channels=" << options.channels()
         << ", multires=" << options.multires();
  if (!options.include_input()) stream << ", include_input=false";
  if (!options.log_sampling()) stream << ", log_sampling=false";
  if (options.angle_scale() != 1.0) stream << ", angle_scale=" << options.angle_scale();
  stream << ")";
}

torch::Tensor FourierFeaturesImpl::forward(const torch::Tensor& x) {
  return functional::fourier_features(x, options);
}

}  // namespace posenc
