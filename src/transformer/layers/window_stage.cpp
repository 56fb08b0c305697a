#include "posenc/transformer/layers/window_stage.h"

#include <ostream>

#include "core/print_fields.h"
#include "transformer/layers/window_stage_parts.h"

namespace posenc {

void check_stage(const WindowStageOptions& options) {
  TORCH_CHECK_VALUE(!options.layers().empty(),
                    "[WindowStage] there must be at least one layer. Got no layer");
  const int64_t width = width_before(options);
  for (const WindowEncoderLayerOptions& layer : options.layers()) {
    TORCH_CHECK_VALUE(layer.layer().d_model() == width,
                      "[WindowStage] all layers must have the d_model of the first, ", width,
                      ". Got ", layer.layer().d_model());
  }
  TORCH_CHECK_VALUE(!options.downsample() || options.downsample()->d_model() == width,
                    "[WindowStage] downsample must have the d_model of the layers, ", width,
                    ". Got ", options.downsample()->d_model());
}

WindowStageImpl::WindowStageImpl(WindowStageOptions options_) : options(std::move(options_)) {
  WindowStageImpl::reset();
}

void WindowStageImpl::reset() {
  check_stage(options);
  layers = register_module("layers", torch::nn::ModuleList());
  for (const WindowEncoderLayerOptions& one : options.layers())
    layers->push_back(WindowEncoderLayer(one));
  if (options.downsample())
    downsample = register_module("downsample", PatchMerging(*options.downsample()));
}

void WindowStageImpl::reset_parameters() {
  for (size_t i = 0; i < layers->size(); ++i) layer(i).reset_parameters();
  if (downsample) downsample->reset_parameters();
}

void WindowStageImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "WindowStage", options, WindowStageOptions(options.layers()));
}

WindowEncoderLayerImpl& WindowStageImpl::layer(size_t i) const {
  return member_of<WindowEncoderLayerImpl>("WindowStage", "WindowEncoderLayer", layers, i);
}

torch::Tensor WindowStageImpl::forward(const torch::Tensor& x) {
  torch::Tensor map = x;
  for (size_t i = 0; i < layers->size(); ++i) map = layer(i).forward(map);
  return downsample ? downsample->forward(map) : map;
}

}  // namespace posenc
