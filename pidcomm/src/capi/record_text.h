// Records as text. Signal handlers may call these functions.
#pragma once

#include "capi/text_line.h"
#include "pidcomm/recorder.h"

namespace pidcomm {

const char *text_of_state(int state);

/// The name of the collective; "?" for an unknown one.
const char *name_of_recorded(const pidcomm_record &record);

/// Whether a collective or a scan has an operator.
bool has_operator(int collective);

/// The text of pidcomm_record_text.
TextLine line_of(const pidcomm_record &record);

}  // namespace pidcomm
