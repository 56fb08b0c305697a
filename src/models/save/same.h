#pragma once

namespace posenc {

class EncoderImpl;
class Settings;
struct EncoderConfig;
struct TransformerOptions;

/// Throws c10::ValueError unless an encoder of `saved` has the options of `model`, so that what is
/// saved with this config.json computes the same.
void check_same(const EncoderConfig& saved, const EncoderImpl& model);

/// Throws c10::ValueError, naming the option, if `saved`, which `config` says, computes something
/// else than `expected`.
void check_same(const TransformerOptions& saved, const TransformerOptions& expected,
                const Settings& config);

}  // namespace posenc
