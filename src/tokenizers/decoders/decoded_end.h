#pragma once

#include <string_view>

namespace posenc::text {

/// Follows tokens that come one by one, to know without decoding all of them again whether their
/// text ends in U+FFFD.
class DecodedEnd {
 public:
  virtual ~DecodedEnd() = default;

  virtual void add(std::string_view token) = 0;
  virtual bool is_replacement() const = 0;
};

}  // namespace posenc::text
