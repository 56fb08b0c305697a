#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// Components of tokenizers with the defaults of `tokenizers`' constructors in Python.
namespace posenc::text::components {

using Component = nlohmann::json;

Component sequence(const char* members,
                   std::vector<Component> parts);  ///< members: "normalizers" ...
inline Component normalizers(std::vector<Component> parts) {
  return sequence("normalizers", std::move(parts));
}
inline Component pre_tokenizers(std::vector<Component> parts) {
  return sequence("pretokenizers", std::move(parts));
}
inline Component decoders(std::vector<Component> parts) {
  return sequence("decoders", std::move(parts));
}

Component plain(const char* type);  ///< one without options
Component replace(const std::string& text, const std::string& content);
Component precompiled(const std::string& charsmap);

Component byte_level(bool add_prefix_space, bool trim_offsets, bool use_regex);
Component split(Component pattern, const char* behavior, bool invert);

}  // namespace posenc::text::components
