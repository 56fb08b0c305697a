#include <ATen/ops/conv2d.h>

#include <ostream>

#include "posenc/core/skip_init.h"
#include "posenc/positions/nn/vision_embeddings.h"
#include "positions/nn/weights.h"

namespace posenc {

PatchProjectionImpl::PatchProjectionImpl(VisionEmbeddingsOptions options_, std::string path_)
    : options(std::move(options_)), path(std::move(path_)) {
  PatchProjectionImpl::reset();
}

// A parameter's name has no dots, so each name of the path is a module in a module.
void PatchProjectionImpl::reset() {
  if (!path.empty()) {
    const size_t dot = path.find('.');
    inner_ = register_module(path.substr(0, dot),
                             std::make_shared<PatchProjectionImpl>(
                                 options, dot == std::string::npos ? "" : path.substr(dot + 1)));
    return;
  }
  weight_ =
      register_parameter("weight", torch::empty({options.d_model(), options.num_channels(),
                                                 options.patch_height(), options.patch_width()}));
  if (options.patch_bias()) bias_ = register_parameter("bias", torch::empty({options.d_model()}));
  if (!SkipInit::is_active()) reset_parameters();
}

void PatchProjectionImpl::reset_parameters() {
  if (inner_) return inner_->reset_parameters();
  truncated_normal_(weight_, options.initializer_range());
  if (bias_.defined()) zero_weights_(bias_);
}

void PatchProjectionImpl::pretty_print(std::ostream& stream) const {
  stream << "posenc::PatchProjection(patch=" << options.patch_height() << "x"
         << options.patch_width() << ", channels=" << options.num_channels()
         << ", d_model=" << options.d_model();
  if (!options.patch_bias()) stream << ", bias=false";
  stream << ")";
}

torch::Tensor PatchProjectionImpl::forward(const torch::Tensor& pixel_values) {
  const torch::Tensor pixels =
      options.cast_pixels() ? pixel_values.to(weight().scalar_type()) : pixel_values;
  return at::conv2d(pixels, weight(), bias(),
                    /*stride=*/{options.patch_height(), options.patch_width()})
      .flatten(2)
      .transpose(1, 2);  // (B, N, D)
}

const torch::Tensor& PatchProjectionImpl::weight() const {
  return inner_ ? inner_->weight() : weight_;
}

const torch::Tensor& PatchProjectionImpl::bias() const { return inner_ ? inner_->bias() : bias_; }

}  // namespace posenc
