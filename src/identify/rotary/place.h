#pragma once

#include <string_view>

namespace posenc::identification {

/// Whether a component of the dotted name is an attention module, or names rotary embeddings:
/// tables to be added to embeddings do not occur there.
bool is_rotary_place(std::string_view name);

/// Whether the name is that of a part of a rotary embedding: in such a place, or with `freq`,
/// `rotary` or `rope` anywhere.
bool names_rotary(std::string_view name);

}  // namespace posenc::identification
