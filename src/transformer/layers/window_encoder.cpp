#include "posenc/transformer/layers/window_encoder.h"

#include <ostream>
#include <tuple>

#include "core/print_fields.h"
#include "transformer/layers/layer_parts.h"
#include "transformer/layers/window_stage_parts.h"

namespace posenc {
namespace {

constexpr const char* kWindowEncoder = "WindowEncoder";

void check_not_empty(const std::vector<WindowStageOptions>& stages) {
  TORCH_CHECK_VALUE(!stages.empty(), "[", kWindowEncoder,
                    "] there must be at least one stage. Got no stage");
  for (const WindowStageOptions& stage : stages) {
    TORCH_CHECK_VALUE(!stage.layers().empty(), "[", kWindowEncoder,
                      "] a stage must have at least one layer. Got no layer");
  }
}

void check_stages(const WindowEncoderOptions& options) {
  const auto& stages = options.stages();
  check_not_empty(stages);
  for (const WindowStageOptions& stage : stages) check_stage(stage);
  for (size_t i = 1; i < stages.size(); ++i) {
    TORCH_CHECK_VALUE(width_before(stages[i]) == width_after(stages[i - 1]), "[", kWindowEncoder,
                      "] d_model of stage ", i, " must be the width after the one before it, ",
                      width_after(stages[i - 1]), ". Got ", width_before(stages[i]));
  }
  const int64_t width = width_after(stages.back());
  TORCH_CHECK_VALUE(!options.neck() || options.neck()->d_model() == width, "[", kWindowEncoder,
                    "] d_model of the neck must be the width after the last stage, ", width,
                    ". Got ", options.neck()->d_model());
  TORCH_CHECK_VALUE(!options.neck() || !options.norm(), "[", kWindowEncoder,
                    "] norm must be false with a neck. Got true");
}

}  // namespace

int64_t WindowEncoderOptions::num_layers() const {
  int64_t count = 0;
  for (const WindowStageOptions& stage : stages())
    count += static_cast<int64_t>(stage.layers().size());
  return count;
}

std::pair<int64_t, int64_t> WindowEncoderOptions::locate_layer(int64_t i) const {
  int64_t stage = 0;
  for (const WindowStageOptions& one : stages()) {
    const auto count = static_cast<int64_t>(one.layers().size());
    if (i < count) break;
    i -= count;
    ++stage;
  }
  return {stage, i};
}

const TransformerLayerOptions& WindowEncoderOptions::first_layer() const {
  check_not_empty(stages());
  return stages().front().layers().front().layer();
}

const TransformerLayerOptions& WindowEncoderOptions::last_layer() const {
  check_not_empty(stages());
  return stages().back().layers().back().layer();
}

WindowEncoderImpl::WindowEncoderImpl(WindowEncoderOptions options_) : options(std::move(options_)) {
  WindowEncoderImpl::reset();
}

void WindowEncoderImpl::reset() {
  check_stages(options);
  stages = register_module("stages", torch::nn::ModuleList());
  for (const WindowStageOptions& one : options.stages()) stages->push_back(WindowStage(one));
  const TransformerLayerOptions& last = options.last_layer();
  if (options.norm()) {
    norm = register_module(
        "norm",
        LayerNorm(
            LayerNormOptions(width_after(options.stages().back())).eps(last.layer_norm_eps())));
  }
  if (options.neck()) neck = register_module("neck", ConvolutionNeck(*options.neck()));
}

void WindowEncoderImpl::reset_parameters() {
  for (size_t i = 0; i < stages->size(); ++i) stage(i).reset_parameters();
  if (norm) norm->reset_parameters();
  if (neck) neck->reset_parameters();
}

void WindowEncoderImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "WindowEncoder", options, WindowEncoderOptions(options.stages()));
}

WindowStageImpl& WindowEncoderImpl::stage(size_t i) const {
  return member_of<WindowStageImpl>(kWindowEncoder, "WindowStage", stages, i);
}

torch::Tensor WindowEncoderImpl::forward(const torch::Tensor& x) {
  TransformerEncoderRecord nothing;
  return forward_with(x, nothing);
}

torch::Tensor WindowEncoderImpl::forward_with(const torch::Tensor& x,
                                              TransformerEncoderRecord& record) {
  torch::Tensor map = x;
  const auto add_map = [&] {
    if (record.output_hidden_states)
      record.hidden_states.push_back(options.records_layers() ? map : map.flatten(1, 2));
  };
  add_map();
  for (size_t i = 0; i < stages->size(); ++i) {
    WindowStageImpl& own = stage(i);
    const size_t count = own.layers->size();
    for (size_t j = 0; j < count; ++j) {
      if (record.output_attentions && (options.records_layers() || j + 1 == count)) {
        torch::Tensor weights;
        std::tie(map, weights) = own.layer(j).forward_with_weights(map);
        record.attentions.push_back(weights);
      } else {
        map = own.layer(j).forward(map);
      }
      if (options.records_layers()) add_map();
    }
    if (own.downsample) map = own.downsample->forward(map);
    if (!options.records_layers()) add_map();
  }
  if (neck) return neck->forward(map);
  const torch::Tensor tokens = map.flatten(1, 2);
  return norm ? norm->forward(tokens) : tokens;
}

}  // namespace posenc
