#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/error.h"
#include "cli/params.h"
#include "cli/weights.h"
#include "posenc/positions/scale.h"
#include "posenc/weights/manifest.h"

namespace posenc::parity {

using cli::CommandError, cli::described, cli::dtype_text, cli::fail, cli::listed, cli::message_of,
    cli::shape_of, cli::shown;
using Names = std::vector<std::string>;

/// The weights of a file in any format.
struct Weights {
  std::string path;
  WeightsFormat format;
  std::string class_name;                     ///< of a whole script; else ""
  StateDict tensors;                          ///< those with the prefix, which is removed
  std::map<std::string, std::string> values;  ///< a script's numbers and texts, or metadata
  std::set<std::string> optional;             ///< buffers that may be non-persistent
};

/// Reads the tensors under `prefix`, without running code in the file.
Weights read_weights(const std::string& path, const std::string& prefix);

/// The arguments of a forward, by name.
using Call = std::map<std::string, at::Tensor>;

/// Returns an argument, or an undefined tensor if it is absent.
at::Tensor given(const Call& call, const std::string& name);

/// `--param key=value`, with what only these modules take.
struct Params : cli::Params {
  using cli::Params::Params;
  /// Throws CommandError, suggesting the nearest names, for a key that `subject` does not accept.
  void allow(const std::string& subject, const Names& known) const;
  std::optional<double> real(const std::string& key) const;
  std::optional<int64_t> integer(const std::string& key) const;
  bool flag(const std::string& key, bool otherwise) const;
  /// none, sqrt_dim or a number.
  Scale scale(const std::string& key, const Scale& otherwise) const;
};

/// The inputs of a module's forward: one tensor of the given kind, of which Embeddings has
/// positions added and Vectors any length; source and target sentences; or one or two sequences of
/// vectors.
enum class Input { Ids, Positions, Embeddings, Vectors, Timesteps, Sentences, Sequences };

/// A key in the file and the names of its axes; an axis named "1" has size 1.
struct Key {
  std::string name;
  Names axes;
  std::string own = name;  ///< the C++ module's key
};

struct Counterpart;

/// A row of the registry: the files that it matches, and how to make the C++ module.
struct Kind {
  std::string module;  ///< C++ class
  Names names;         ///< class names in files and for --module
  std::string source;
  std::vector<Key> keys;
  bool by_keys;  ///< the keys identify it without a class name
  Input input;
  Names params;
  void (*build)(Counterpart& made);                 ///< sets `module` and `forward`
  Names optional = {};                              ///< arguments of forward
  Names inputs = {"input"};                         ///< those that it requires
  std::map<std::string, std::string> aliases = {};  ///< a script's argument name: ours
};

/// The registry. The combination of name and keys is unique.
const std::vector<Kind>& kinds();
/// Its rows for torch.nn's stacks and the reference class Transformer.
std::vector<Kind> transformer_kinds();

/// A C++ module with the weights of a file.
struct Counterpart {
  const Kind& kind;
  const Weights& weights;
  Params params;
  std::map<std::string, int64_t> sizes;  ///< vocab_size, d_model, ..., from the shapes
  std::shared_ptr<torch::nn::Module> module = nullptr;
  std::function<at::Tensor(const Call&)> forward = nullptr;
  Names loaded = {};   ///< keys in the file
  Names ignored = {};  ///< buffers of a script that the module lacks

  template <typename Holder, typename Forward>
  void set(Holder holder, Forward call_forward) {
    module = holder.ptr();
    forward = [holder, call_forward](const Call& call) mutable {
      return call_forward(holder, call);
    };
  }
  bool has(const std::string& key) const { return weights.tensors.contains(key); }
  /// Of sequences of vectors: (B, L, D), not (L, B, D).
  bool batch_first() const { return params.flag("batch_first", true); }
  /// The dtype of the weights.
  at::ScalarType type() const;
  /// The table of positions, (rows, d_model), or undefined.
  at::Tensor table() const;
};

/// Makes the counterpart of the module in `weights`, in eval mode. It is found by `name` (a C++
/// class or a Python one) if given, else by the class name in the file, else by its keys if they
/// are unique. Throws CommandError if there is none or several, if keys or shapes do not match, or
/// for unknown parameters.
Counterpart make_counterpart(const Weights& weights, const std::string& name, const Names& params);

/// All names that --module accepts; and a table of the classes that they refer to.
Names known_modules();
std::string module_names();

}  // namespace posenc::parity
