#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "inference/layers/frozen_layers.h"
#include "inference/rows/stream.h"

namespace posenc::inference {

/// A batch on its way through the layers.
struct BatchRows {
  const Stream& stream;  ///< all rows
  const Packing& packing;
  const ScoreMask& mask;
  const LayerInputs& inputs;
};

/// What the mixers of one kind do with a batch. `step` is the number of a mixer among those of its
/// kind; the first row of a part is row `begin` of all.
class MixerRun {
 public:
  virtual ~MixerRun() = default;
  /// Reads rows of a block's input, (part.rows, D).
  virtual void read(std::size_t /*step*/, const Stream& /*part*/, const float* /*input*/,
                    int64_t /*begin*/) {}
  /// Mixes the rows of each of these sequences, once they are read: of all, unless the mixers can
  /// do with some.
  virtual void mix(std::size_t /*step*/, const float* /*input*/,
                   const SequenceRange& /*sequences*/) {}
  /// Adds the result to the rows of a part, as add_projected() does.
  virtual void write(std::size_t step, const Stream& part, int64_t begin, const Norm& post,
                     const Norm& after) = 0;
};

/// The mixers of one kind in a stack: attentions, say.
class Mixers {
 public:
  virtual ~Mixers() = default;
  /// How the projections read a block's input.
  virtual RowFormat row_format() const { return RowFormat::Float32; }
  /// Whether a row depends on other rows of a block's input, so that all have to be read before.
  virtual bool mixes() const { return true; }
  /// Whether some sequences of a batch may go through the layers before the others do.
  virtual bool takes_parts() const { return !mixes(); }
  virtual std::unique_ptr<MixerRun> begin(const BatchRows& batch) const = 0;
  /// Adds what a cache needs of a mixer. Returns false if none can do for it.
  virtual bool add_cache_needs(std::size_t /*step*/, CacheNeeds& /*all*/) const { return !mixes(); }
};

/// A network beside a mixer, which reads what the mixer reads, or x by a norm of its own:
/// x += post(network(x)).
struct Beside {
  FeedForward network;
  Norm norm;  ///< none: that of the mixer's input
  Norm post;
};

/// x += post(f(x)), where f is a mixer or a feed-forward network, and norms.
struct Block {
  const Mixers* mixers = nullptr;  ///< of its kind; null: the network
  std::size_t step = 0;            ///< of the mixers
  FeedForward network = {};
  std::optional<Beside> beside = std::nullopt;
  bool is_unnormed = false;  ///< in a pre-norm stack: the input is x, without a norm
  Norm post = {};
  /// The block's own in a post-norm stack; in a pre-norm stack that of the next block's input.
  Norm after = {};
  Norm in_place = {};             ///< of x after that
  Norm next = {};                 ///< of the next block's input, after `in_place`
  bool next_is_residual = false;  ///< `next` replaces x, and the next block reads x
  bool ends_layer = false;
};

/// Mixers of which each has a `Step` of its own, with RowFormat row_format() const.
template <typename Step>
class StepMixers : public Mixers {
 public:
  RowFormat row_format() const override {
    RowFormat format = RowFormat::Float32;
    for (const Step& one : steps) format = either(format, one.row_format());
    return format;
  }
  /// The block of a step, without what all blocks have.
  Block add(Step step) {
    steps.push_back(std::move(step));
    return {.mixers = this, .step = steps.size() - 1};
  }

  std::vector<Step> steps;
};

/// Layers that are blocks, whose rows pass through all networks and projections between two mixers
/// at once, so that they stay in the cache. Sequences of a large batch pass through all layers in
/// parts for the same reason, where the mixers allow it.
class BlockLayers : public FrozenLayers {
 public:
  BlockLayers(const TransformerEncoderImpl& encoder, bool norm_first)
      : FrozenLayers(encoder), norm_first_(norm_first), width_(encoder.options.layer().d_model()) {}

  at::Tensor run(const at::Tensor& rows, const Packing& packing, const ScoreMask& mask,
                 const LayerInputs& inputs, std::vector<at::Tensor>* outputs) const override;
  std::optional<CacheNeeds> cache_needs() const override;

  bool norm_first() const { return norm_first_; }

  /// The mixers of a kind, which are made for the first of them.
  template <typename Kind, typename... Arguments>
  Kind& mixers(const Arguments&... arguments) {
    for (const auto& one : mixers_) {
      if (auto* const found = dynamic_cast<Kind*>(one.get())) return *found;
    }
    mixers_.push_back(std::make_unique<Kind>(arguments...));
    return static_cast<Kind&>(*mixers_.back());
  }

  std::vector<Block> blocks;
  Norm entry;                      ///< of the first block's input
  bool entry_is_residual = false;  ///< it replaces x, and that block reads x
  Norm last;                       ///< of x, after all layers

 private:
  bool norm_first_;
  int64_t width_;
  std::vector<std::unique_ptr<Mixers>> mixers_;
};

}  // namespace posenc::inference
