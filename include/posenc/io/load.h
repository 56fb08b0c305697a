#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "posenc/io/error.h"
#include "posenc/io/state_dict.h"

namespace posenc {

/// Renames a file's names, after the prefix is stripped: {{"transformer.h.*.ln_1.*",
/// "layers.*.norm1.*"}, {"lm_head.*", ""}}. The first pattern that a whole name matches decides. A
/// `*` stands for any run of characters, the shortest that fits, and each `*` of the new name for
/// the run at the same place. A name without `*` is an exact one; an empty new name leaves the
/// tensor out.
using KeyMap = std::vector<std::pair<std::string, std::string>>;

/// Relaxations of the default strict load.
struct LoadOptions {
  /// Selects the names that begin with it and strips it, dot included (`model.encoder.`); names
  /// without it belong to other modules and are left alone.
  TORCH_ARG(std::string, prefix) = "";
  TORCH_ARG(KeyMap, key_map);
  TORCH_ARG(bool, allow_missing) = false;
  TORCH_ARG(bool, allow_unexpected) = false;
  /// Converts to the module's dtype: among floating-point types, among complex types, and from an
  /// integer type to one that holds all its values. Else another dtype is an error.
  TORCH_ARG(bool, cast) = false;
  /// Reads all tensors into memory of their own before the module changes, so that even a disk
  /// that fails leaves it as it was. Costs as much memory as the weights.
  TORCH_ARG(bool, staged) = false;
};

/// A table that the module can compute (WeightNotes), compared with its recipe.
struct TableReport {
  std::string name;         ///< the module's
  int64_t rows = 0;         ///< of the module, which keeps its size
  int64_t file_rows = 0;    ///< the file may have more or fewer: only the common ones count
  double max_abs = 0.0;     ///< largest difference of the file's common rows from the recipe
  bool as_computed = true;  ///< that is within what another machine may make of the recipe
};

/// What a load found. Names are complete: the module's in `loaded`, `missing` and `cast`, the
/// file's in `unexpected` and `ignored`. A tensor that the module has under several names needs
/// only one of them in the file.
struct LoadReport {
  std::vector<std::string> loaded;
  std::vector<std::string> missing;     ///< in the module, not in the file
  std::vector<std::string> unexpected;  ///< in the file, not in the module
  std::vector<std::string> ignored;     ///< non-persistent in the module, or left out by the map
  std::vector<std::string> cast;        ///< converted to the module's dtype
  std::vector<TableReport> tables;      ///< every computed table that the file has
};

/// Loads the weights in `path`, in any format that read_manifest() knows, into `module`.
///
/// Names, shapes, dtypes and ties are checked before the first byte of the module changes; one
/// WeightsError lists every missing, unexpected, misshapen, retyped and disagreeing tensor.
/// Devices, requires_grad and the identity of the module's tensors are kept. A table that is longer
/// or shorter in the file is taken where its common rows agree with the module's recipe. What can
/// fail later is the disk, or a file that shrinks: the error then names what was written.
LoadReport load_weights(torch::nn::Module& module, const std::string& path,
                        const LoadOptions& options = {});

/// The same from tensors in memory, of any device.
LoadReport load_state_dict(torch::nn::Module& module, const StateDict& tensors,
                           const LoadOptions& options = {});

/// Every tensor in `path` (any format), on the CPU, in the file's order and with its nested names
/// joined by dots. Tensors that share memory in the file share it here; strides are kept. Throws
/// WeightsError, also for a tensor that cannot be read; sparse ones and objects are left out.
StateDict load_tensors(const std::string& path);

}  // namespace posenc
